// The plots of findings: a timeline and the operations next to it point at each other, growth tells its rounds.

const cardPlots = (() => {
  const kinds = {
    timeline(figure, { operations, series, closing, texts }) {
      const card = figure.closest(".card"), list = find(".operations", card), caption = find("figcaption", figure);
      const cells = all(".then", figure);
      const moments = closing === null ? operations : [...operations, closing];
      const rowOf = (moment) => find(`tr[data-index="${moment === closing ? "closing" : moment}"]`, list);
      const momentOf = (row) => row.dataset.index === "closing" ? closing : Number(row.dataset.index);
      const centre = (row) => { if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2; };
      let isPointedAt = true;  // at the picture, and not at the list, which must not move then

      function wordsOf(row) {
        const [index, line, request] = row.cells;
        const words = all("code, .outcome", request).map((each) => each.textContent).join("");
        return `operation ${index.textContent}${line.textContent && ` (line ${line.textContent})`}: ${words}`;
      }
      function say(at) {
        const moment = moments[at], row = rowOf(moment);
        for (const other of all("tr.at", list)) other.classList.remove("at");
        row?.classList.add("at");
        if (isPointedAt) centre(row);
        caption.textContent = moment === closing ? "closing" : row ? wordsOf(row) : texts[moment] ?? "";
        cells.forEach((cell, number) => {
          const value = series[number].values[Math.min(at, operations.length - 1)];
          cell.textContent = value === null ? "not read" : plots.inBytes(value, "B");
        });
      }
      const show = plots.explore(figure, { ...axisOf(figure), moments }, "Memory timeline", say);
      list.addEventListener("pointerover", (event) => {
        const row = event.target.closest("tr[data-index]");
        const at = row ? moments.indexOf(momentOf(row)) : -1;
        isPointedAt = false;
        if (at >= 0) show(at);
        isPointedAt = true;
      });
      const offending = find("tr.offending", list);
      const broken = offending ? moments.indexOf(momentOf(offending)) : -1;
      if (broken >= 0) show(broken);
      centre(offending);
    },

    growth(figure, { rounds, grown, unit }) {
      const [cell] = all(".then", figure);
      const amount = (value) => unit === "bytes" ? plots.inBytes(value, "B")
        : `${value.toLocaleString("en")} ${value === 1 ? unit.replace(/s$/, "") : unit}`;
      plots.explore(figure, { ...axisOf(figure), moments: rounds }, "Growth", (at) => {
        cell.textContent = `${amount(grown[at])} more after round ${rounds[at]}`;
      });
    },
  };

  const axisOf = ({ dataset }) => ({ first: Number(dataset.first), count: Number(dataset.count) });

  async function wake(figure) {
    const packed = Uint8Array.from(atob(find("script", figure).textContent), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    kinds[figure.dataset.plot](figure, JSON.parse(await new Response(stream).text()));
    figure.dataset.awake = "";
  }

  return { wake };
})();
