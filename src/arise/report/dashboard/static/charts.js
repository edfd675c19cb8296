"use strict";
// Tooltips without delay and a crosshair with the numbers of every series. The data tables have the same numbers.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("aria-hidden", "true");
  let line = null;

  const hide = () => { tip.remove(); line?.remove(); line = null; };
  const show = (lines, x, y) => {
    tip.replaceChildren(...lines.map((words) => {
      const row = document.createElement("p");
      row.textContent = words;
      return row;
    }));
    document.body.append(tip);
    const box = tip.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth ? Math.max(4, x - 16 - box.width) : x + 16;
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 12, innerHeight - box.height - 4))}px`;
  };
  const written = (value, unit) => {
    if (value === null) return "–";
    return unit === "%" ? `${(100 * value).toFixed(1)} %` : String(Number(value.toFixed(3)));
  };
  const crosshair = (svg, event) => {
    const data = svg.tips ??= JSON.parse(svg.dataset.tips);
    if (!data.x.length) return;
    const box = svg.getBoundingClientRect(), wide = svg.viewBox.baseVal.width, tall = svg.viewBox.baseVal.height;
    const at = (event.clientX - box.left) / box.width * wide;
    let nearest = 0;
    data.x.forEach((x, n) => { if (Math.abs(x - at) < Math.abs(data.x[nearest] - at)) nearest = n; });
    if (line?.ownerSVGElement !== svg) {
      line?.remove();
      line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      line.setAttribute("class", "crosshair");
      line.setAttribute("y1", "8");
      line.setAttribute("y2", String(tall - 34));
      svg.append(line);
    }
    for (const end of ["x1", "x2"]) line.setAttribute(end, String(data.x[nearest]));
    const values = data.series.filter(([, found]) => found[nearest] !== undefined && found[nearest] !== null);
    show([data.at[nearest], ...values.map(([name, found]) => `${name}: ${written(found[nearest], data.unit)}`)],
      event.clientX, event.clientY);
  };
  const told = (target) => {
    for (let node = target; node && node.localName !== "svg"; node = node.parentNode) {
      const title = [...node.children ?? []].find((child) => child.localName === "title");
      if (title) { node.dataset.tip = title.textContent; title.remove(); }
      if (node.dataset?.tip) return node.dataset.tip;
    }
    return null;
  };
  const over = (event) => {
    const svg = event.target.closest?.(".chart svg, td svg");
    if (!svg) { hide(); return; }
    if (svg.dataset.tips) { crosshair(svg, event); return; }
    const words = told(event.target);
    if (words) show([words], event.clientX, event.clientY); else hide();
  };
  document.addEventListener("pointermove", over);
  document.addEventListener("pointerdown", over);
  document.addEventListener("pointerleave", hide);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
})();
