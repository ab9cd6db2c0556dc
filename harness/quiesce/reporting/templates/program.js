// What the page of a program can do beyond being read: read out a moment of the plot, and walk through the flame graph.
(() => {
  // -- memory over time ------------------------------------------------------------------------------------------

  const inBytes = (bytes) => plots.inBytes(bytes, "bytes");

  function explore(figure) {
    const data = JSON.parse(find("script", figure).textContent);
    const readout = find("[data-readout]", figure);
    const cells = all("td.then", figure);  // the rows stand from the top of the stack to its bottom
    plots.explore(figure, data, "Memory over time", (at) => {
      const total = data.series.reduce((sum, values) => sum + values[at], 0);
      readout.textContent = `After call ${data.moments[at].toLocaleString("en")}: ${inBytes(total)} in all.`;
      cells.forEach((cell, row) => { cell.textContent = inBytes(data.series[data.series.length - 1 - row][at]); });
    });
  }
  for (const figure of all("[data-memory]")) explore(figure);

  // -- flame graph -----------------------------------------------------------------------------------------------

  const NARROW_PIXELS = 44;

  function walk(figure) {
    const picture = find("svg", figure), said = find("[data-said]", figure), reset = find("[data-reset]", figure);
    const number = (cell, name) => parseFloat(cell.getAttribute(name));
    const cells = all(".cell", picture).map((element) => ({
      element, x: number(element, "x"), width: number(element, "width"), row: Number(element.getAttribute("aria-level")),
    }));
    const note = said.textContent;
    let root = cells[0];

    const isBelow = (cell, top) => cell.x >= top.x - 0.001 && cell.x + cell.width <= top.x + top.width + 0.001;
    function draw() {
      const scale = 100 / root.width, pixels = picture.clientWidth / 100;
      for (const cell of cells) {
        const above = cell.row < root.row && isBelow(root, cell);
        const shown = above || isBelow(cell, root);
        const x = above ? 0 : (cell.x - root.x) * scale, width = above ? 100 : cell.width * scale;
        cell.element.classList.toggle("hidden", !shown);
        cell.element.classList.toggle("narrow", width * pixels < NARROW_PIXELS);
        cell.element.setAttribute("x", `${x}%`);
        cell.element.setAttribute("width", `${width}%`);
      }
      reset.hidden = root === cells[0];
    }
    function zoom(cell) {
      root = cell;
      draw();
      focus(cell);
    }
    function focus(cell) {
      for (const other of cells) other.element.setAttribute("tabindex", other === cell ? "0" : "-1");
      cell.element.focus();
    }
    const tell = (cell) => { said.textContent = cell ? find("title", cell.element).textContent.replace(/\n/g, " · ") : note; };
    const visible = () => cells.filter((cell) => !cell.element.classList.contains("hidden"));
    const parent = (cell) => visible().findLast((each) => each.row === cell.row - 1 && isBelow(cell, each));
    const child = (cell) => visible().find((each) => each.row === cell.row + 1 && isBelow(each, cell));
    const beside = (cell, way) => {
      const row = visible().filter((each) => each.row === cell.row);
      return row[row.indexOf(cell) + way];
    };
    const cellOf = (event) => cells.find((cell) => cell.element === event.target.closest?.(".cell"));

    picture.addEventListener("click", (event) => { const cell = cellOf(event); if (cell) zoom(cell); });
    picture.addEventListener("pointerover", (event) => tell(cellOf(event)));
    picture.addEventListener("pointerleave", () => tell(null));
    picture.addEventListener("focusin", (event) => tell(cellOf(event)));
    picture.addEventListener("keydown", (event) => {
      const cell = cellOf(event);
      if (!cell) return;
      const to = {
        ArrowUp: () => parent(cell), ArrowDown: () => child(cell),
        ArrowLeft: () => beside(cell, -1), ArrowRight: () => beside(cell, 1), Home: () => cells[0],
      }[event.key];
      if (to) { event.preventDefault(); const next = to(); if (next) focus(next); }
      else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom(cell); }
      else if (event.key === "Escape") { event.preventDefault(); zoom(cells[0]); }
    });
    reset.addEventListener("click", () => zoom(cells[0]));
    new ResizeObserver(draw).observe(picture);
  }
  for (const figure of all("[data-flame]")) walk(figure);

  // A link to what lies within a closed process opens it.
  function open() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = target && target.closest("details:not([open])");
    if (closed) { closed.open = true; target.scrollIntoView(); }
  }
  addEventListener("hashchange", open);
  open();
})();
