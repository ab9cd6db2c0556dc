// The plots: drawn when they are looked at, by Plotly, which is unpacked from the page for the first one. What a figure
// shows, timelines.js and growth.js know, one for each kind.

const plots = (() => {
  const kinds = {};
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

  function axis(title) {
    return {
      gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, tickfont: { size: 11, color: colour("muted") },
      title: { text: title, font: { size: 12, color: colour("muted") } },
    };
  }

  // The axis of what is counted in whole numbers, from one to the next: operations or rounds.
  function steps(thing, first, last, room) {
    return {
      ...axis(thing), range: [first - room / 2, last + room], tickformat: "d", unifiedhovertitle: { text: `${thing} %{x:d}` },
      spikecolor: colour("muted"), spikethickness: -1, spikedash: "solid", ...(last - first < 12 ? { dtick: 1 } : { nticks: 10 }),
    };
  }

  // The axis of what a gauge reads; the lines and their words come with the data.
  function amounts(ticks, title = "") {
    const [low, high] = [ticks[0][0], ticks[ticks.length - 1][0]];
    const margin = (high - low) * 0.06;
    return {
      ...axis(title), range: [low - margin, high + margin], tickvals: ticks.map(([value]) => value), ticktext: ticks.map(([, words]) => words),
    };
  }

  function layout(own) {
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("text") },
      margin: { l: 72, r: 14, t: 46, b: 42 },
      height: 320,
      hovermode: "x unified",
      hoverdistance: -1,
      hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("text") } },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("muted"), activecolor: colour("text") },
      ...own,
      legend: { orientation: "h", x: 0, bgcolor: "rgba(0,0,0,0)", ...own.legend },
    };
  }

  async function draw(figure) {
    if (drawn.has(figure)) return;
    drawn.set(figure, null);
    const kind = kinds[figure.dataset.plot];
    const plot = find(".plot", figure);
    const plotly = await loadLibrary();
    const data = JSON.parse(await unpack(find("script", figure)));
    drawn.set(figure, data);
    const config = {
      responsive: true, displaylogo: false, doubleClick: "reset", modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
      toImageButtonOptions: { filename: figure.closest(".card").dataset.anchor },
    };
    await plotly.newPlot(plot, kind.traces(data), layout(kind.layout(data)), config);
    kind.join?.(figure, data, plotly);
    figure.dataset.drawn = "";
  }

  async function redraw() {
    if (library === null) return;
    const plotly = await library;
    for (const [figure, data] of drawn) {
      const kind = kinds[figure.dataset.plot];
      if (data) plotly.react(find(".plot", figure), kind.traces(data), layout(kind.layout(data)));
    }
  }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
  }, { rootMargin: "200px" });

  return { kinds, observe: (figure) => seen.observe(figure), redraw, colour, inBytes, steps, amounts };
})();
