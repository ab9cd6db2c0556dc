// What a gauge read that grows, over the rounds of a leak check; where growth was measured, and how fast it is.

plots.kinds.growth = (() => {
  const { colour, inBytes } = plots;

  // Plotly takes tags in its texts for markup; a test may name a gauge and its unit as it likes.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  function amount(value, unit) {
    if (unit === "bytes") return inBytes(value);
    return plain(`${value.toLocaleString("en")} ${value === 1 ? unit.replace(/s$/, "") : unit}`);
  }

  function traces(data) {
    const [[from, low], [to, high]] = data.slope;
    return [
      {
        x: data.rounds, y: data.grown, name: plain(data.gauge), type: "scatter",
        mode: data.rounds.length > 120 ? "lines" : "lines+markers",
        line: { shape: "hv", color: colour("live"), width: 2.2 },
        marker: { size: 4, color: colour("live") },
        fill: "tozeroy", fillcolor: colour("live", 0.16),
        customdata: data.grown.map((value) => amount(value, data.unit)),
        hovertemplate: "%{customdata} more<extra></extra>",
      },
      {
        x: [from, to], y: [low, high], name: plain(data.rate), type: "scatter", mode: "lines",
        line: { color: colour("failed"), width: 2, dash: "dash" }, hoverinfo: "skip",
      },
    ];
  }

  function layout(data) {
    const first = data.rounds[0], last = data.rounds[data.rounds.length - 1];
    const [[from], [to]] = data.slope;
    return {
      legend: { y: 1.01, yanchor: "bottom" },
      xaxis: plots.steps("round", first, last, Math.max(0.6, (last - first) * 0.03)),
      yaxis: plots.amounts(data.ticks, `${data.unit === "bytes" ? "" : plain(data.unit)} more than after round ${first}`),
      shapes: [{
        type: "rect", x0: from, x1: to, yref: "paper", y0: 0, y1: 1, layer: "below",
        fillcolor: colour("failed", 0.07), line: { color: colour("failed", 0.5), width: 1 },
      }],
      annotations: [{
        x: from, yref: "paper", y: 1, xanchor: "left", yanchor: "top", showarrow: false,
        text: `rounds ${from} to ${to}`, font: { color: colour("failed"), size: 12 },
      }],
    };
  }

  return { traces, layout };
})();
