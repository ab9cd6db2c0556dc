"use strict";
// The memory timelines: drawn when they are looked at, by Plotly, which is unpacked from the page for the first one.

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

const timelines = (() => {
  const STYLES = {
    live: { dash: "solid", width: 2.2, fill: 0.16 },
    reserved: { dash: "dash", width: 1.8, fill: 0 },
    pinned: { dash: "dot", width: 2.2, fill: 0 },
  };
  const drawn = new Map();
  let library = null;

  function unpack(element) {
    const packed = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  }

  function loadLibrary() {
    library ??= (async () => {
      const script = document.createElement("script");
      script.textContent = await unpack(find("#plot-library"));
      document.head.append(script);
      return Plotly;
    })();
    return library;
  }

  // Plotly needs colours as numbers; the browser resolves ours for the scheme in use.
  function colour(name, opacity = 1) {
    const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = `var(--${name})`;
    const resolved = getComputedStyle(probe).color;
    probe.remove();
    return opacity === 1 ? resolved : resolved.replace("rgb(", "rgba(").replace(")", `, ${opacity})`);
  }

  function inBytes(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = 0;
    while (power < units.length - 1 && Math.abs(bytes) >= 1024 ** (power + 1)) power += 1;
    return `${Number((bytes / 1024 ** power).toFixed(2))} ${units[power]}`;
  }

  function traces(data) {
    // The state behind the last operation gets a width of its own: up to closing, or half a step.
    const end = data.closing ?? data.operations[data.operations.length - 1] + 0.5;
    return data.series.map(({ gauge, values }) => {
      const style = STYLES[gauge];
      const last = values[values.length - 1];
      return {
        x: [...data.operations, end],
        y: [...values, last],
        name: gauge,
        type: "scatter",
        mode: data.operations.length > 60 ? "lines" : "lines+markers",
        line: { shape: "hv", color: colour(gauge), width: style.width, dash: style.dash },
        marker: { size: [...values.map(() => 5), 0], color: colour(gauge) },
        fill: style.fill ? "tozeroy" : "none",
        fillcolor: colour(gauge, style.fill || 0.1),
        customdata: [...values, last].map((value) => value === null ? "not read" : inBytes(value)),
        hovertemplate: "%{customdata}",
        hoverinfo: [...values.map(() => "all"), data.closing === null ? "skip" : "all"],
      };
    });
  }

  function layout(data) {
    const marks = [...data.offending.map((index) => [index, `operation ${index}`]), ...(data.closing === null ? [] : [[data.closing, "closing"]])];
    const last = Math.max(...data.operations, ...marks.map(([x]) => x));
    const first = data.operations[0];
    const room = Math.max(0.6, (last - first) * 0.03);
    const [low, high] = [data.ticks[0][0], Math.max(1, data.ticks[data.ticks.length - 1][0])];
    const margin = (high - low) * 0.06;
    const axis = {
      gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, tickfont: { size: 11, color: colour("muted") },
      title: { font: { size: 12, color: colour("muted") } },
    };
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("text") },
      margin: { l: 72, r: 14, t: 46, b: 42 },
      height: 320,
      hovermode: "x unified",
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("text") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("text") },
      legend: { orientation: "h", x: 0, y: 1.17, yanchor: "top", bgcolor: "rgba(0,0,0,0)" },
      xaxis: {
        ...axis, range: [first - room / 2, last + room], title: { ...axis.title, text: "operation" }, tickformat: "d",
        unifiedhovertitle: { text: "operation %{x:d}" }, spikecolor: colour("muted"), spikethickness: -1, spikedash: "solid",
        ...(last - first < 12 ? { dtick: 1 } : { nticks: 10 }),
      },
      yaxis: {
        ...axis, range: [low - margin, high + margin],
        tickvals: data.ticks.map(([bytes]) => bytes), ticktext: data.ticks.map(([, words]) => words),
      },
      shapes: marks.map(([x]) => ({
        type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: colour("failed"), width: 1.6, dash: "dot" },
      })),
      annotations: marks.slice(0, 6).map(([x, words]) => ({
        x, yref: "paper", y: 1, yanchor: "bottom", showarrow: false, text: `✗ ${words}`,
        xanchor: (x - first) / (last - first || 1) > 0.5 ? "right" : "left",
        font: { color: colour("failed"), size: 12 },
      })),
    };
  }

  function wordsOf(row) {
    const [index, line, request] = row.cells;
    const words = all("code, .outcome", request).map((each) => each.textContent).join("");
    return `operation ${index.textContent}${line.textContent && ` (line ${line.textContent})`}: ${words}`;
  }

  function pointAt(card, data, operation) {
    const closing = operation === data.closing;
    for (const row of all("tr.at", card)) row.classList.remove("at");
    const row = find(`tr[data-index="${closing ? "closing" : operation}"]`, card);
    row?.classList.add("at");
    find("figcaption", card).textContent = closing ? "closing" : row ? wordsOf(row) : data.texts[operation] ?? "";
    return row;
  }

  async function draw(figure) {
    if (drawn.has(figure)) return;
    drawn.set(figure, null);
    const card = figure.closest(".card");
    const plot = find(".plot", figure);
    const plotly = await loadLibrary();
    const data = JSON.parse(await unpack(find("script", figure)));
    drawn.set(figure, data);
    const config = {
      responsive: true, displaylogo: false, doubleClick: "reset", modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
      toImageButtonOptions: { filename: card.dataset.anchor },
    };
    await plotly.newPlot(plot, traces(data), layout(data), config);
    const list = find(".operations", card);
    const centre = (row) => { if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2; };
    plot.on("plotly_hover", (event) => centre(pointAt(card, data, event.points[0].x)));
    list.addEventListener("pointerover", (event) => {
      const row = event.target.closest("tr[data-index]");
      if (!row) return;
      const operation = row.dataset.index === "closing" ? data.closing : Number(row.dataset.index);
      pointAt(card, data, operation);
      const pointNumber = row.dataset.index === "closing" ? data.operations.length : data.operations.indexOf(operation);
      if (pointNumber >= 0) plotly.Fx.hover(plot, data.series.map((_, curveNumber) => ({ curveNumber, pointNumber })));
    });
    list.addEventListener("pointerleave", () => plotly.Fx.unhover(plot));
    const offending = find("tr.offending", card);
    centre(offending);
    if (offending) pointAt(card, data, offending.dataset.index === "closing" ? data.closing : Number(offending.dataset.index));
    figure.dataset.drawn = "";
  }

  async function redraw() {
    if (library === null) return;
    const plotly = await library;
    for (const [figure, data] of drawn) if (data) plotly.react(find(".plot", figure), traces(data), layout(data));
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "200px" });

  return { observe: (figure) => seen.observe(figure), redraw };
})();
