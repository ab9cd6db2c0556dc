// The memory timelines: live, reserved and pinned bytes over operations, beside the operations as text.

plots.kinds.timeline = (() => {
  const { colour, inBytes } = plots;
  const STYLES = {
    live: { dash: "solid", width: 2.2, fill: 0.16 },
    reserved: { dash: "dash", width: 1.8, fill: 0 },
    pinned: { dash: "dot", width: 2.2, fill: 0 },
  };

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
    return {
      legend: { y: 1.17, yanchor: "top" },  // above the words of the marks
      xaxis: plots.steps("operation", first, last, Math.max(0.6, (last - first) * 0.03)),
      yaxis: plots.amounts(data.ticks),
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

  function pointAt(figure, data, operation) {
    const card = figure.closest(".card");
    const closing = operation === data.closing;
    for (const row of all("tr.at", card)) row.classList.remove("at");
    const row = find(`tr[data-index="${closing ? "closing" : operation}"]`, card);
    row?.classList.add("at");
    find("figcaption", figure).textContent = closing ? "closing" : row ? wordsOf(row) : data.texts[operation] ?? "";
    return row;
  }

  // The timeline and the operations beside it: pointing at one shows the other.
  function join(figure, data, plotly) {
    const card = figure.closest(".card");
    const plot = find(".plot", figure);
    const list = find(".operations", card);
    const centre = (row) => { if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2; };
    plot.on("plotly_hover", (event) => centre(pointAt(figure, data, event.points[0].x)));
    list.addEventListener("pointerover", (event) => {
      const row = event.target.closest("tr[data-index]");
      if (!row) return;
      const operation = row.dataset.index === "closing" ? data.closing : Number(row.dataset.index);
      pointAt(figure, data, operation);
      const pointNumber = row.dataset.index === "closing" ? data.operations.length : data.operations.indexOf(operation);
      if (pointNumber >= 0) plotly.Fx.hover(plot, data.series.map((_, curveNumber) => ({ curveNumber, pointNumber })));
    });
    list.addEventListener("pointerleave", () => plotly.Fx.unhover(plot));
    const offending = find("tr.offending", card);
    centre(offending);
    if (offending) pointAt(figure, data, offending.dataset.index === "closing" ? data.closing : Number(offending.dataset.index));
  }

  return { traces, layout, join };
})();
