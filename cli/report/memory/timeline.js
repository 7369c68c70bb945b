// The timeline of the HTML report, with the panel of the selected node. report.js is included after
// this file.

const colorOf = (name) => {
  const key = '--' + name.replace(/ /g, '-');
  return getComputedStyle(document.documentElement).getPropertyValue(key).trim() || '#888888';
};

// Convert a place, which is an index into the schedule, to the x at which the node begins, and
// back. On the axis of nodes, a node has width 1, and x counts from 1.
function placeToX(view, place) { return state.axis === 'nodes' ? place + 1 : 100 * place / view.count; }
function xToPlace(view, x) {
  return state.axis === 'nodes' ? Math.floor(x) - 1 : Math.floor(x / 100 * view.count + 1e-9);
}
function endOfAxis() {
  return Math.max(...[state.view, state.other].filter((view) => view).map((view) => placeToX(view, view.count)));
}
const startOfAxis = () => placeToX(state.view, 0);

// Splits the places from `first` up to `last` into `columns` parts. Adds the first place of each
// part, and the places of its smallest and largest value.
function addExtremes(places, values, first, last, columns) {
  const width = (last - first) / columns;
  if (width <= 2) {
    for (let i = first; i < last; ++i) places.push(i);
    return;
  }
  for (let column = 0; column < columns; ++column) {
    const begin = first + Math.floor(column * width), end = first + Math.floor((column + 1) * width);
    let low = begin, high = begin;
    for (let i = begin; i < end; ++i) {
      if (values[i] < values[low]) low = i;
      if (values[i] > values[high]) high = i;
    }
    places.push(begin, low, high);
  }
}

// Returns the x to draw: extremes of the whole curve, more extremes inside the window, each peak,
// and the end.
function drawnX(window) {
  const xs = [];
  for (const view of [state.view, state.other]) {
    if (view === null) continue;
    const places = [view.peakPlace()], values = view.curves().requested;
    addExtremes(places, values, 0, view.count, wholeColumns);
    const first = Math.max(0, xToPlace(view, window[0])), last = Math.min(view.count, xToPlace(view, window[1]) + 2);
    if (last > first) addExtremes(places, values, first, last, windowColumns);
    for (const place of places) xs.push(placeToX(view, place));
    xs.push(placeToX(view, view.count));
  }
  xs.sort((a, b) => a - b);
  return xs.filter((x, i) => i === 0 || x !== xs[i - 1]);
}

function valueAt(view, values, x) {
  const place = Math.min(xToPlace(view, x), view.count - 1);
  if (x > placeToX(view, view.count) || place < 0 || place >= values.length) return null;
  return values[place];
}

// Returns the series in drawing order. Areas come first, from the top of the stack down, so that
// each area covers the lower part of the previous one. Lines follow.
function series() {
  const curves = state.view.curves();
  const areas = curves.classes.map((curve) => ({name: curve.name, values: curve.values, isArea: true})).reverse();
  const lines = curves.lines.map((line) => ({...line, view: state.view}));
  const shown = state.other === null ? [] :
    state.other.curves().lines.filter((line) => !line.name.startsWith('allocated'));
  const overlaid = shown.map((line) => ({...line, name: 'overlaid: ' + line.name, view: state.other, color: 'other',
    dash: line.name !== 'requested'}));
  return areas.concat(lines, overlaid);
}

function rowsOf(list, window) {
  return drawnX(window).map((x) => {
    const row = [x];
    let sum = 0;
    const stacked = new Map();
    for (let i = list.length - 1; i >= 0; --i) {
      if (!list[i].isArea) continue;
      if (!state.hidden.has(list[i].name)) sum += valueAt(state.view, list[i].values, x) || 0;
      stacked.set(i, x > placeToX(state.view, state.view.count) ? null : sum);
    }
    list.forEach((one, i) => row.push(one.isArea ? stacked.get(i) : valueAt(one.view, one.values, x)));
    return row;
  });
}

function drawArea(e) {
  const context = e.drawingContext, area = e.plotArea, floor = area.y + area.h;
  context.fillStyle = e.color;
  context.beginPath();
  let y = floor, isOpen = false, x = area.x;
  for (const point of e.points) {
    if (point.yval === null || isNaN(point.canvasy)) break;
    if (isOpen) context.lineTo(point.canvasx, y); else context.moveTo(point.canvasx, floor);
    isOpen = true;
    y = point.canvasy;
    x = point.canvasx;
    context.lineTo(x, y);
  }
  context.lineTo(x, floor);
  context.fill();
}

// Draws a dashed step plot as one path. dygraphs restarts the dash pattern at each point, so dashes
// over dense points would look solid.
function drawDashed(e) {
  const context = e.drawingContext;
  context.save();
  context.strokeStyle = e.color;
  context.lineWidth = e.strokeWidth;
  context.setLineDash([5, 3]);
  context.beginPath();
  let y = null;
  for (const point of e.points) {
    const isGap = point.yval === null || isNaN(point.canvasy);
    if (!isGap && y === null) context.moveTo(point.canvasx, point.canvasy);
    if (!isGap && y !== null) context.lineTo(point.canvasx, y);
    if (!isGap) context.lineTo(point.canvasx, point.canvasy);
    y = isGap ? null : point.canvasy;
  }
  context.stroke();
  context.restore();
}

// Uses steps that are powers of two, so that labels are round in binary units.
function byteTicks(low, high, pixels) {
  const most = Math.max(2, Math.floor(pixels / 45));
  let step = 1;
  while ((high - low) / step > most) step *= 2;
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
    ticks.push({v: value, label: bytesText(value).replace(/\.00 /, ' ').replace(/(\.\d)0 /, '$1 ')});
  }
  return ticks;
}

const nodeLabel = (x) => state.axis === 'nodes' ? grouped(Math.round(x)) : (Math.round(x * 1000) / 1000) + ' %';

function chartOptions(list) {
  const options = {};
  for (const one of list) {
    options[one.name] = one.isArea ? {plotter: drawArea, color: colorOf(one.name), strokeWidth: 0} :
      {color: colorOf(one.color), strokeWidth: one.name.endsWith('requested') ? 1.5 : 1.2,
        ...(one.dash ? {plotter: drawDashed} : {}), showInRangeSelector: one.name === 'requested'};
  }
  return {labels: ['x'].concat(list.map((one) => one.name)), series: options,
    visibility: list.map((one) => !state.hidden.has(one.name)),
    axes: {y: {ticker: byteTicks, axisLabelWidth: 72, valueRange: [0, Math.max(1, topOfAxis(list))]}, x: {axisLabelFormatter: nodeLabel, axisLabelWidth: 70}},
    axisLineColor: colorOf('line'), gridLineColor: colorOf('line'),
    rangeSelectorPlotStrokeColor: colorOf('faint'), rangeSelectorPlotFillColor: colorOf('parameter'),
    rangeSelectorPlotFillGradientColor: colorOf('paper'),
    rangeSelectorBackgroundStrokeColor: colorOf('line'), rangeSelectorForegroundStrokeColor: colorOf('faint'),
    xlabel: state.axis === 'nodes' ? 'node, in schedule order' : 'per cent of the step'};
}

function drawChart() {
  const list = series();
  clearTimeout(state.timer);
  if (state.graph !== null) state.graph.destroy();
  state.graph = null;  // the constructor below already calls onDrawn()
  state.window = [startOfAxis(), endOfAxis()];
  state.drawn = state.window.join();
  state.list = list;
  state.graph = new Dygraph(byId('chart'), rowsOf(list, state.window), {
    ...chartOptions(list), legend: 'never', stepPlot: true, includeZero: true, showRangeSelector: true,
    rangeSelectorHeight: 34, rangeSelectorAlpha: 0.5, highlightCircleSize: 0, connectSeparatedPoints: false,
    xRangePad: 0, yRangePad: 4, dateWindow: state.window.slice(), drawCallback: onDrawn,
    interactionModel: {...Dygraph.defaultInteractionModel, dblclick: () => setWindow(startOfAxis(), endOfAxis())}});
  placeMarks();
}

// Draws more points of the visible part after the user has stopped zooming or panning.
function onDrawn(graph) {
  state.window = graph.xAxisRange().slice();
  if (state.graph === null) return;
  placeMarks();
  if (state.window.join() === state.drawn) return;
  clearTimeout(state.timer);
  state.timer = setTimeout(() => {
    state.drawn = state.window.join();
    state.graph.updateOptions({file: rowsOf(state.list, state.window), dateWindow: state.window.slice()});
  }, 80);
}

function setWindow(low, high) {
  const first = startOfAxis(), last = endOfAxis();
  const least = Math.min(last - first, state.axis === 'nodes' ? 4 : 400 / state.view.count);
  const width = Math.min(Math.max(high - low, least), last - first);
  const begin = Math.min(Math.max((low + high - width) / 2, first), last - width);
  state.graph.updateOptions({dateWindow: [begin, begin + width]});
}

function zoom(factor, center) {
  const [low, high] = state.window;
  const middle = center === undefined ? (low + high) / 2 : center;
  setWindow(middle - (middle - low) * factor, middle + (high - middle) * factor);
}

function middleOf(place) { return (placeToX(state.view, place) + placeToX(state.view, place + 1)) / 2; }

function zoomToPeak() {
  const width = Math.max((endOfAxis() - startOfAxis()) / 20, state.axis === 'nodes' ? 40 : 4000 / state.view.count);
  const middle = middleOf(state.view.peakPlace());
  setWindow(middle - width / 2, middle + width / 2);
  showPlace(state.view.peakPlace());
}

function placeMark(mark, place) {
  const area = state.graph.getArea(), x = state.graph.toDomXCoord(middleOf(place));
  mark.hidden = !(x >= area.x - 1 && x <= area.x + area.w + 1);
  mark.style.left = x + 'px';
  mark.style.height = (area.y + area.h) + 'px';
  return x > area.x + area.w - 120;
}

function placeMarks() {
  const mark = byId('peak-mark'), peak = state.view.peakPlace();
  mark.firstElementChild.textContent = 'peak ' + bytesText(state.view.curves().requested[peak]) +
    (state.view.isFirstStep ? ' of step 1' : '');
  mark.classList.toggle('left', placeMark(mark, peak));
  placeMark(byId('cursor'), state.place);
  placeBuckets();
  placeLimit();
}

// Draws a bar above the curves for each collective of several tensors, from its start to its end.
function placeBuckets() {
  const area = state.graph.getArea(), view = state.view, ends = [];  // right end of each row
  const clamp = (x) => Math.min(Math.max(x, area.x), area.x + area.w);
  byId('bucket-marks').replaceChildren(...view.device.buckets.map((row) => {
    const left = clamp(state.graph.toDomXCoord(placeToX(view, row.first_position)));
    const right = clamp(state.graph.toDomXCoord(placeToX(view, row.last_position + 1)));
    const mark = element('span', {title: '%' + row.node + ': ' + grouped(row.tensors) + ' tensors, ' + bytesText(row.bytes)});
    let line = ends.findIndex((end) => end <= left);
    if (line < 0) line = Math.min(ends.length, 5);
    ends[line] = right;
    mark.hidden = right <= left;
    mark.style.left = left + 'px';
    mark.style.width = (right - left) + 'px';
    mark.style.top = (area.y + 6 * line) + 'px';
    return mark;
  }));
}

// Draws the limit of the allocator, and a mark at the node at which memory runs out.
function placeLimit() {
  const {fit, allocator_bytes: limit} = state.view.device;
  const line = byId('limit-line'), mark = byId('fail-mark'), area = state.graph.getArea();
  line.hidden = fit === null || limit > state.graph.yAxisRange()[1];
  mark.hidden = fit === null || fit.fits;
  if (!line.hidden) {
    line.style.top = state.graph.toDomYCoord(limit) + 'px';
    line.style.left = area.x + 'px';
    line.style.width = area.w + 'px';
    line.firstElementChild.textContent = 'limit ' + bytesText(limit);
  }
  if (mark.hidden) return;
  mark.classList.toggle('left', placeMark(mark, fit.position));
  mark.firstElementChild.textContent = 'memory runs out at %' + printable(fit.node);
}

// Returns the upper end of the y axis. It includes the limit if the limit is not far above the
// curves.
function topOfAxis(list) {
  const {fit, allocator_bytes: limit} = state.view.device;
  let most = 0;
  for (const one of list) {
    if (!one.isArea) most = one.values.reduce((sum, value) => Math.max(sum, value), most);
  }
  return fit !== null && limit > most && limit < 1.6 * most ? limit * 1.06 : most * 1.04;
}

// ---- the selected node

function showPlace(place) {
  const view = state.view;
  state.place = Math.min(Math.max(place, 0), view.count - 1);
  const name = view.report.nodes[state.place];
  byId('node-name').replaceChildren(nodeCode(name));
  byId('node-name').dataset.place = String(state.place);
  byId('node-where').textContent = printable([grouped(state.place + 1) + ' of ' + grouped(view.count),
    view.text('phase', state.place), view.text('target', state.place), view.text('module_path', state.place)]
    .filter((text) => text !== '').join(', '));
  const x = middleOf(state.place);
  showOverlaidNode(x);
  for (const one of state.list) {
    const value = valueAt(one.view || view, one.values, x), cell = state.cells.get(one.name);
    cell.textContent = value === null ? '' : bytesText(value);
    cell.title = value === null ? '' : exactText(value);
    cell.dataset.bytes = value === null ? '' : String(value);
  }
  placeMark(byId('cursor'), state.place);
}

function showOverlaidNode(x) {
  const other = state.other, place = other === null ? -1 : xToPlace(other, x);
  byId('node-other').hidden = other === null;
  if (other === null) return;
  const name = place < other.count ? '%' + other.report.nodes[place] : 'past its end';
  byId('node-other').replaceChildren('overlaid: ', code(name));
}

function toggle(name, isShown) {
  if (isShown) state.hidden.delete(name); else state.hidden.add(name);
  state.graph.updateOptions({...chartOptions(state.list), file: rowsOf(state.list, state.window)});
}

function showSeries() {
  state.cells = new Map();
  const areas = state.list.filter((one) => one.isArea), lines = state.list.filter((one) => !one.isArea);
  const row = (one, isFirstLine) => {
    const box = element('input'), swatch = element('span', {kind: one.isArea ? 'swatch' : 'swatch line'});
    box.type = 'checkbox';
    box.checked = !state.hidden.has(one.name);
    box.addEventListener('change', () => toggle(one.name, box.checked));
    swatch.style[one.isArea ? 'background' : 'borderTopColor'] = colorOf(one.isArea ? one.name : one.color);
    if (one.dash) swatch.style.borderTopStyle = 'dashed';
    const cell = element('td', {kind: 'number'});
    state.cells.set(one.name, cell);
    return element('tr', {kind: isFirstLine ? 'line-first' : ''},
      [element('td', {}, [element('label', {}, [box, swatch, one.name])]), cell]);
  };
  byId('series').replaceChildren(element('tbody', {}, areas.map((one) => row(one, false))
    .concat(lines.map((one, i) => row(one, i === 0)))));
}

// Returns the node under the pointer. If one pixel has several nodes, returns the node with the
// most live bytes.
function pointedPlace(event) {
  const left = state.graph.eventToDomCoords(event)[0], view = state.view, values = view.curves().requested;
  const clamp = (place) => Math.min(Math.max(place, 0), view.count - 1);
  const first = clamp(xToPlace(view, state.graph.toDataXCoord(left)));
  const last = clamp(xToPlace(view, state.graph.toDataXCoord(left + 1)) - 1);
  let best = first;
  for (let i = first; i <= last; ++i) if (values[i] > values[best]) best = i;
  return best;
}

function showTimeline() {
  byId('chart-row').classList.toggle('overlaid', state.other !== null);
  drawChart();
  showSeries();
  showPlace(state.view.peakPlace());
}

function isInPlot(event) {
  const area = state.graph.getArea(), [x, y] = state.graph.eventToDomCoords(event);
  return x >= area.x && x <= area.x + area.w && y >= area.y && y <= area.y + area.h;
}

const keys = {
  ArrowLeft: () => showPlace(state.place - 1),
  ArrowRight: () => showPlace(state.place + 1),
  Home: () => showPlace(0),
  End: () => showPlace(state.view.count - 1),
  '+': () => zoom(0.5, middleOf(state.place)),
  '=': () => zoom(0.5, middleOf(state.place)),
  '-': () => zoom(2, middleOf(state.place)),
  0: () => setWindow(startOfAxis(), endOfAxis()),
  p: zoomToPeak,
};

function listen() {
  const frame = byId('chart-frame');
  frame.addEventListener('mousemove', (event) => { if (isInPlot(event)) showPlace(pointedPlace(event)); });
  frame.addEventListener('keydown', (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  frame.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;  // without these keys, the wheel scrolls the page
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, state.graph.toDataXCoord(state.graph.eventToDomCoords(event)[0]));
  }, {passive: false});
  byId('zoom-in').addEventListener('click', () => zoom(0.5));
  byId('zoom-out').addEventListener('click', () => zoom(2));
  byId('zoom-all').addEventListener('click', () => setWindow(startOfAxis(), endOfAxis()));
  byId('zoom-peak').addEventListener('click', zoomToPeak);
  byId('axis').addEventListener('change', () => { state.axis = byId('axis').value; showTimeline(); });
  byId('report').addEventListener('change', () => { state.view = views[byId('report').value]; showAll(); });
  byId('other').addEventListener('change', () => { state.other = views[byId('other').value] || null; showAll(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showAll);
}
