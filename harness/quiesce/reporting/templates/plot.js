// What a plot can do beyond being seen: read out a moment, which a pointer or the arrow keys choose.

const plots = (() => {
  function inBytes(bytes, smallest) {
    const units = [smallest, "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = 0;
    while (power < units.length - 1 && Math.abs(bytes) >= 1024 ** (power + 1)) power += 1;
    return `${Number((bytes / 1024 ** power).toFixed(2))} ${units[power]}`;
  }

  // The axis has `count` numbers from `first` on; `moments` are those that can be read, and `say` gets the place of one.
  function explore(figure, { first, count, moments }, name, say) {
    const canvas = find(".canvas", figure), cursor = find(".cursor", figure);
    let at = -1;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "group");
    canvas.setAttribute("aria-label", `${name}; arrow keys move from moment to moment`);

    function show(index) {
      at = Math.max(0, Math.min(moments.length - 1, index));
      cursor.hidden = false;
      figure.classList.add("reading");
      cursor.style.left = `${100 * (moments[at] - first + 0.5) / count}%`;
      say(at);
    }
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      const place = first - 0.5 + count * (event.clientX - box.left) / box.width;
      const index = moments.findIndex((moment) => moment > place);
      show((index < 0 ? moments.length : index) - 1);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: moments.length - 1 }[event.key];
      if (step === undefined || event.target !== canvas) return;
      event.preventDefault();
      show(step);
    });
    return show;
  }

  return { inBytes, explore };
})();
