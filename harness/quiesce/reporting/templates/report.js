// What the page can do beyond being read: filters, sorting, opening. page.js, plot.js and card_plots.js stand before it.
(() => {
  const root = document.documentElement;

  // -- filters ---------------------------------------------------------------------------------------------------

  const parts = all(".matrix tbody"), rows = all(".matrix tbody tr");
  const cards = all(".card");
  const chips = all(".chip");
  const search = find("#search"), backend = find("#backend"), topic = find("#topic"), shown = find("#shown");
  const noMatch = find("#no-match");
  const columns = document.head.appendChild(document.createElement("style"));

  // What filters read, taken from the page once: asking ten thousand rows takes longer than a keystroke may.
  const ENTITIES = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#34;": '"', "&#39;": "'" };
  function wordsOfCard(card) {
    const inside = find("noscript", card)?.textContent ?? find(".body", card).innerHTML;
    const words = inside.replace(/<script.*?<\/script>/gs, "").replace(/<wbr>/g, "").replace(/<[^>]*>/g, " ");
    return find("summary", card).textContent + words.replace(/&(?:lt|gt|amp|#34|#39);/g, (entity) => ENTITIES[entity]);
  }
  let taken = null;
  function facts() {
    taken ??= {
      cards: cards.map((card) => ({ card, text: wordsOfCard(card).toLowerCase(), shown: true })),
      rows: rows.map((row) => {
        const cells = Array.from(row.cells).slice(1);
        return {
          row, text: row.cells[0].textContent.toLowerCase(), shown: true, fits: true,
          verdicts: cells.map((cell) => cell.className.slice(2).replace("-", " ")),
          anchors: cells.map((cell) => cell.firstElementChild?.hash).filter(Boolean),
        };
      }),
    };
    return taken;
  }
  (window.requestIdleCallback ?? setTimeout)(facts);

  // Only what changes is touched: each element that is hidden or shown costs the browser.
  function show(each, element, fits) {
    if (each.shown !== fits) element.hidden = !fits;
    each.shown = fits;
    return fits;
  }

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.verdict));
    const column = backend.value === "" ? null : Number(backend.value);
    const name = column === null ? null : backend.selectedOptions[0].textContent;
    const says = (text) => words.every((word) => text.includes(word));
    const verdictFits = (verdict) => verdict !== "" && (wanted.size === 0 || wanted.has(verdict));
    const withFinding = new Set();
    let cardCount = 0, rowCount = 0;
    for (const each of facts().cards) {
      const { card } = each;
      const fits = (topic.value === "" || card.dataset.topic === topic.value)
        && (wanted.size === 0 || wanted.has(card.dataset.verdict))
        && (name === null || card.dataset.backend === name)
        && says(each.text);
      cardCount += show(each, card, fits);
      if (fits && words.length) withFinding.add("#" + card.dataset.anchor);
    }
    for (const each of facts().rows) {
      const fits = (topic.value === "" || each.row.dataset.topic === topic.value)
        && (column === null ? wanted.size === 0 || each.verdicts.some(verdictFits) : verdictFits(each.verdicts[column]))
        && (says(each.text) || each.anchors.some((anchor) => withFinding.has(anchor)));
      each.fits = fits;
      rowCount += fits;
    }
    settle();
    if (noMatch) noMatch.hidden = rowCount > 0;
    columns.textContent = column === null ? "" : `.matrix table { --columns: 1; } .matrix tr > :nth-child(n+2):not(:nth-child(${column + 2})) { display: none; }`;
    const all = rowCount === rows.length && cardCount === cards.length;
    shown.textContent = all ? `${rows.length} ${shown.dataset.things}` : `${rowCount} of ${rows.length} ${shown.dataset.things}, ${cardCount} of ${cards.length} findings`;
  }

  // A part of the matrix without a row that fits is hidden as a whole, and its rows stay as they are: what was never
  // touched costs nothing when the search is cleared. A part that is out of sight is as high as its rows are likely to be.
  function settle() {
    const inside = new Map(parts.map((part) => [part, []]));
    for (const each of facts().rows) inside.get(each.row.parentNode).push(each);
    for (const [part, held] of inside) {
      const count = held.reduce((sum, each) => sum + each.fits, 0);
      if (part.hidden !== (count === 0)) part.hidden = count === 0;
      if (count === 0) continue;
      for (const each of held) show(each, each.row, each.fits);
      if (part.style.getPropertyValue("--rows") !== String(count)) part.style.setProperty("--rows", count);
    }
  }

  let pending = 0;
  search.addEventListener("input", () => { clearTimeout(pending); pending = setTimeout(filter, 40); });
  backend.addEventListener("change", filter);
  topic.addEventListener("change", filter);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  find("#filters").addEventListener("submit", (event) => event.preventDefault());
  find("#filters").addEventListener("reset", () => {
    for (const chip of chips) chip.setAttribute("aria-pressed", "false");
    setTimeout(filter);
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
    }
  });

  // -- sorting ---------------------------------------------------------------------------------------------------

  rows.forEach((row, position) => { row.position = position; });

  function sortBy(head) {
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const other of all(".matrix [aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const column = head.dataset.sort === "case" ? null : Number(head.dataset.sort) + 1;
    const worst = chips.map((chip) => "v-" + chip.dataset.verdict.replace(" ", "-"));
    const ranks = new Map(rows.map((row) => [row, column === null ? 0 : worst.indexOf(row.cells[column].className)]));
    const rank = (row) => ranks.get(row) < 0 ? worst.length : ranks.get(row);
    const way = ascending ? 1 : -1;
    rows.sort((a, b) => way * (rank(a) - rank(b)) || (column === null ? way : 1) * (a.position - b.position));
    const size = Math.ceil(rows.length / parts.length);
    parts.forEach((part, number) => part.append(...rows.slice(number * size, (number + 1) * size)));
    settle();
  }

  for (const head of all(".matrix [data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "head";
    button.append(...find(".head", head).childNodes);
    find(".head", head).replaceWith(button);
    button.addEventListener("click", () => sortBy(head));
  }

  // -- cards -----------------------------------------------------------------------------------------------------

  // The inside of a card is the text of its <noscript>: markup that the report's templates wrote and escaped.
  function unpack(card) {
    const packed = find("noscript", card);
    if (!packed) return;
    const inside = document.createElement("template");
    inside.innerHTML = packed.textContent;
    packed.replaceWith(inside.content);
    for (const figure of all("figure[data-plot]", card)) cardPlots.wake(figure);
  }
  document.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.matches(".card")) unpack(event.target);
  }, true);

  function openTarget() {
    const card = cards.find((each) => "#" + each.dataset.anchor === location.hash);
    if (!card) return;
    if (card.hidden) show(facts().cards[cards.indexOf(card)], card, true);
    card.open = true;
    unpack(card);
    card.scrollIntoView();
    find("summary", card).focus({ preventScroll: true });
  }
  addEventListener("hashchange", openTarget);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".matrix td a");
    if (link && link.getAttribute("href") === location.hash) openTarget();
  });
  find("#open-all")?.addEventListener("click", () => {
    for (const card of cards.filter((each) => !each.hidden)) { card.open = true; unpack(card); }
  });
  find("#close-all")?.addEventListener("click", () => { for (const card of cards) card.open = false; });

  // -- what stands still while the page scrolls ------------------------------------------------------------------

  const bar = find("#filters");
  new ResizeObserver(() => {
    const covers = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
    root.style.setProperty("--covered", `${covers}px`);
  }).observe(bar);

  for (const card of cards) if (card.open) unpack(card);
  shown.textContent = `${rows.length} ${shown.dataset.things}`;
  openTarget();
})();
