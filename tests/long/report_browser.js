// Runs at the end of a report's page (report_browser_test.cc): looks at every plot, drags, double clicks and clicks as a reader does, and
// tells in attributes of the element html how many things it looked at and what was wrong.
(async () => {
  const told = document.documentElement.dataset, wrong = [];
  let checks = 0;
  const expect = (right, words) => {
    checks++;
    if (!right) wrong.push(words);
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const settled = () => new Promise((done) => setTimeout(done, 50));  // some frames
  const cards = () => all("main [data-plot]"), cardOf = (id) => cards().find((c) => c.dataset.plot === id);
  const pictures = () => Object.fromEntries(cards().filter((c) => c.querySelector("canvas")).map((c) => [c.dataset.plot, c.querySelector("canvas").toDataURL()]));
  const ranges = () => Object.fromEntries(plots.filter((p) => p.range).map((p) => [p.id, p.range()]));
  const near = (a, b, off) => Math.abs(a[0] - b[0]) <= off && Math.abs(a[1] - b[1]) <= off;

  // Axes and grids are nearly grey: a pixel with a colour is of a line, an area or a cell. On the right a heat map has the scale of its colours.
  function isDrawn(canvas) {
    const right = canvas.classList.contains("heat") ? 74 * devicePixelRatio : 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width - right, canvas.height);
    for (let i = 0; i < data.length; i += 4)
      if (data[i + 3] > 100 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) return true;
    return false;
  }

  function everyPlotHasData() {
    for (const card of cards()) {
      expect(+card.dataset.points > 0, `${card.dataset.plot} has no points`);
      for (const canvas of card.querySelectorAll("canvas")) {
        expect(isDrawn(canvas), `nothing is drawn in ${card.dataset.plot}`);
        expect(canvas.clientWidth > 0.9 * card.clientWidth, `${card.dataset.plot} is ${canvas.clientWidth} wide in a card of ${card.clientWidth}`);
      }
    }
  }

  const mouse = (node, type, share) => {
    const box = node.getBoundingClientRect();
    node.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true, button: 0, buttons: type === "mouseup" ? 0 : 1, clientX: box.left + share * box.width, clientY: box.top + 0.5 * box.height }));
  };

  async function drag(id, from, to, on = ".u-over") {
    const over = cardOf(id).querySelector(on);
    cardOf(id).scrollIntoView();
    await settled();
    mouse(over, "mousemove", from);
    await settled();
    mouse(over, "mousedown", from);
    for (const share of [from + (to - from) / 3, from + (2 * (to - from)) / 3, to]) {
      mouse(over, "mousemove", share);
      await settled();
    }
    mouse(over, "mouseup", to);
    await settled();
    return 2 / over.getBoundingClientRect().width;  // two pixels, as a share
  }

  async function zoomAndReset(from, id, resetBy) {
    const before = ranges(), pictured = pictures(), [low, high] = before[from], width = high - low;
    expect(Object.values(before).every((r) => near(r, [low, high], 0)), "plots begin with different ranges");
    const off = width * (await drag(from, 0.25, 0.6));
    const zoomed = ranges(), wanted = [low + 0.25 * width, low + 0.6 * width];
    for (const [plot, range] of Object.entries(zoomed)) expect(near(range, wanted, off), `a drag on ${from} brings ${plot} to ${range}, not to ${wanted}`);
    for (const [plot, picture] of Object.entries(pictures())) expect(picture !== pictured[plot], `a drag on ${from} leaves the picture of ${plot}`);
    mouse(cardOf(id).querySelector(resetBy), "dblclick", 0.5);
    await settled();
    for (const [plot, range] of Object.entries(ranges())) expect(near(range, before[plot], 0), `a double click on ${id} brings ${plot} to ${range}`);
    for (const [plot, picture] of Object.entries(pictures())) expect(picture === pictured[plot], `a double click on ${id} leaves the picture of ${plot}`);
  }

  const timeLine = () => cardOf("timeline").querySelector("svg"), times = () => plots.find((p) => p.times).times();
  const marks = () => timeLine().querySelectorAll("path, rect").length, labels = () => [...timeLine().querySelectorAll("text")].map((t) => t.textContent);

  // Over steps the time line is zoomed alone, and shows when the steps were made that a plot is zoomed to; over time it is as the plots are.
  async function timesZoomAndReset() {
    const [drawn, all, plotted] = [timeLine().outerHTML, times(), JSON.stringify(ranges())];
    expect(all[0] === 0 && all[1] > 0, `the time line begins with ${all}`);
    const reset = async () => {
      mouse(timeLine(), "dblclick", 0.5);
      await settled();
      expect(timeLine().outerHTML === drawn, "a double click leaves the time line");
      expect(JSON.stringify(ranges()) === plotted, "a double click on the time line leaves the plots");
    };
    const box = timeLine().getBoundingClientRect(), left = +timeLine().querySelector("line").getAttribute("x1"), width = box.width - left - 20;
    const at = (share) => (left + share * width) / box.width, few = marks(), words = labels().join();
    await drag("timeline", at(0.5), at(0.5), "svg");
    expect(timeLine().outerHTML === drawn, "a click zooms the time line");
    await drag("timeline", at(0.4), at(0.7), "svg");
    expect(near(times(), [0.4 * all[1], 0.7 * all[1]], all[1] / width), `a drag brings the time line to ${times()} of ${all}`);
    expect(marks() < few, `${marks()} of ${few} marks are shown after a drag on the time line`);
    for (const mark of timeLine().querySelectorAll("path, rect, line")) {
      const { x, width: w } = mark.getBBox();
      expect(x > left - 6 && x + w < left + width + 6, `a mark from ${x} to ${x + w} lies beside the time line`);
    }
    expect(labels().join() !== words && new Set(labels()).size === labels().length, `the words ${words} are after a drag ${labels()}`);
    expect(JSON.stringify(ranges()) === plotted, "a drag on the time line moves plots over steps");
    const bar = timeLine().querySelector("rect[height='17']");
    mouse(bar, "mousemove", 0.5);
    expect(!tip.hidden && tip.textContent.includes("attempt 1"), "no words at a part of the time line: " + tip.textContent);
    await reset();
    expect(tip.hidden, "the words stay where the part has gone");
    await drag("loss", 0.25, 0.6);
    const [from, to] = ranges().loss, inView = report.runs.flatMap((r) => r.axis.time.filter((t, i) => r.axis.step[i] >= from && r.axis.step[i] <= to));
    const [low, high] = times(), gap = Math.max(...report.runs.flatMap((r) => r.axis.time.map((t, i) => t - (r.axis.time[i - 1] || 0))));
    expect(low <= Math.min(...inView) && high >= Math.max(...inView) && near([low, high], [Math.min(...inView), Math.max(...inView)], gap), `steps ${from} to ${to} bring the time line to ${low} to ${high}, not to ${Math.min(...inView)} to ${Math.max(...inView)}`);
    await reset();
    document.querySelectorAll("#modes button")[2].click();
    await settled();
    for (const [id, on] of [["timeline", "svg"], ["loss", ".u-over"]]) {
      await drag(id, 0.5, 0.6, on);
      expect(near(ranges().lr, times(), 0), `over time a drag on ${id} brings plots to ${ranges().lr}, the time line to ${times()}`);
    }
    document.querySelectorAll("#modes button")[0].click();
    await settled();
    expect(timeLine().outerHTML === drawn, "another axis leaves the time line");
  }

  async function aPressWithoutADragChangesNothing() {
    const before = JSON.stringify(ranges());
    await drag("loss", 0.5, 0.5);
    expect(JSON.stringify(ranges()) === before, "a click zooms");
  }

  async function axesChange() {
    const steps = ranges().loss;
    await drag("loss", 0.3, 0.5);
    for (const [mode, high] of [["tokens", report.runs[0].row.tokens], ["time", null], ["step", steps[1]]]) {
      all("#modes button").find((b) => b.textContent === mode).click();
      await settled();
      const range = ranges().loss;
      expect(range[0] === 0 && (high == null ? range[1] > 0 : range[1] === high), `the axis of ${mode} goes over ${range}`);
      everyPlotHasData();
    }
  }

  async function tablesSort() {
    const column = (title) => [...cardOf("table").querySelectorAll("th")].findIndex((th) => th.textContent === title);
    const values = (title) => [...cardOf("table").querySelectorAll("tr")].slice(1).map((row) => row.children[column(title)].textContent);
    const click = (title) => cardOf("table").querySelectorAll("th")[column(title)].click();
    expect(values("run").join() === "b,a", "the runs stand as they were given: " + values("run"));
    for (const wanted of ["a,b", "b,a", "a,b"]) {
      click("run");
      expect(values("run").join() === wanted, `a click on run gives ${values("run")}, not ${wanted}`);
    }
    for (const up of [true, false]) {
      click("loss");
      const [first, second] = values("loss").map(Number);
      expect(up ? first < second : first > second, `a click on loss gives ${values("loss")}`);
    }
  }

  // The table of a study, lent to these runs: numbers decide, not the words of a cell.
  async function resultsSort() {
    Object.assign(report, { results: [["point", "bytes"], ["b", "1.2 GiB"], ["a", "980 MiB"], ["c", ""]], result_values: [[null, 1.2e9], [null, 9.8e8], [null, null]] });
    render();
    await settled();
    const points = () => [...cardOf("results").querySelectorAll("tr")].slice(1).map((row) => row.children[0].textContent).join();
    expect(points() === "b,a,c", "the rows stand as they were given: " + points());
    for (const [title, wanted] of [["bytes", "a,b,c"], ["bytes", "b,a,c"], ["point", "a,b,c"], ["point", "c,b,a"]]) {
      const runs = cardOf("table").textContent;
      [...cardOf("results").querySelectorAll("th")].find((th) => th.textContent === title).click();
      expect(points() === wanted, `a click on ${title} gives ${points()}, not ${wanted}`);
      expect(cardOf("table").textContent === runs, `a click on ${title} sorts the runs`);
    }
    Object.assign(report, { results: [], result_values: [] });
    render();
    await settled();
  }

  try {
    await settled();
    everyPlotHasData();
    await zoomAndReset("loss", "lr", ".u-over");
    await zoomAndReset("shares", "monitors/grad_norm", "canvas");
    await timesZoomAndReset();
    await aPressWithoutADragChangesNothing();
    await tablesSort();
    await resultsSort();
    await axesChange();
    told.done = "1";
  } catch (problem) {
    wrong.push("the test stopped: " + problem.stack);
  }
  Object.assign(told, { checks, wrong: wrong.join("; "), seen: cards().map((c) => c.dataset.plot).join(" ") });
})();
