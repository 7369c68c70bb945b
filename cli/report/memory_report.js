(function () {
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const classNames = ['parameter', 'buffer', 'constant', 'optimizer state', 'input', 'gradient', 'saved value',
  'recomputed', 'communication', 'temporary', 'workspace'];
const wholeColumns = 700;   // steps drawn of the whole, for the range below the chart
const windowColumns = 1600; // steps drawn of the part that is looked at

// ---- texts

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0, size = Math.abs(bytes);
  while (size >= 1024 && unit + 1 < units.length) { size /= 1024; ++unit; }
  return (bytes < 0 ? '-' : '') + (unit === 0 ? size.toString() : size.toFixed(2)) + ' ' + units[unit];
}

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
const exactText = (bytes) => grouped(bytes) + ' B';
const growthText = (bytes) => (bytes > 0 ? '+' : '') + bytesText(bytes);
const printable = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
  (c) => '\\x' + c.charCodeAt(0).toString(16).padStart(2, '0'));

function percentText(part, whole) { return whole > 0 ? (100 * part / whole).toFixed(1) + ' %' : ''; }

// ---- elements; text from files only ever becomes text

function element(tag, options, children) {
  const made = document.createElement(tag);
  const given = options || {};
  if (given.text !== undefined) made.textContent = printable(given.text);
  if (given.kind) made.className = given.kind;
  if (given.title) made.title = printable(given.title);
  for (const child of children || []) made.append(child);
  return made;
}

const code = (text) => element('code', {text: text, title: text});
const nodeCode = (name) => code('%' + name);

function fillTable(table, heads, rows) {
  const head = element('tr', {}, heads.map((column) => element('th', {text: column[0], kind: column[1] || ''})));
  const body = rows.map((cells) => element('tr', {}, cells.map((cell, i) => {
    const made = element('td', {kind: heads[i][1] || ''});
    made.append(typeof cell === 'string' ? printable(cell) : cell);
    return made;
  })));
  table.replaceChildren(element('thead', {}, [head]), element('tbody', {}, body));
}

function fillList(list, rows) {
  list.replaceChildren(...rows.flatMap(([name, value]) => [
    element('dt', {text: name}), element('dd', {}, [typeof value === 'string' ? printable(value) : value])]));
}

// ---- figures

// The inverse of encode_differences() in memory_html.h.
function decode(text, count) {
  const values = new Float64Array(count);
  let at = 0, value = 0;
  for (const word of text === '' ? [] : text.split(' ')) {
    if (word[0] === '~') {
      const end = at + parseInt(word.slice(1), 36);
      values.fill(value, at, end);
      at = end;
    } else {
      value += parseInt(word, 36);
      values[at++] = value;
    }
  }
  return at === count ? values : values.slice(0, at);
}

// One device of one graph of one file. What has a value for each node is decoded when it is first looked at.
function makeView(report, index) {
  const device = report.memory.devices[index], timeline = report.timelines[index], count = report.nodes.length;
  const name = [report.file, '@' + report.memory.graph, device.device || 'no device'].join(', ');
  const view = {report: report, device: device, name: name, count: count};
  view.curves = () => {
    if (view.decoded) return view.decoded;
    const decoded = {classes: [], lines: []};
    for (const kind of classNames) {
      if (kind in timeline.classes) decoded.classes.push({name: kind, values: decode(timeline.classes[kind], count)});
    }
    decoded.requested = decode(timeline.requested, count);
    decoded.lines.push({name: 'requested', color: 'ink', values: decoded.requested});
    for (const segments of Object.keys(timeline.allocated)) {
      decoded.lines.push({name: 'allocated, ' + segments, color: 'allocated', dash: segments !== 'classic',
        values: decode(timeline.allocated[segments], count)});
      decoded.lines.push({name: 'reserved, ' + segments, color: 'reserved', dash: segments !== 'classic',
        values: decode(timeline.reserved[segments], count)});
    }
    view.decoded = decoded;
    return decoded;
  };
  view.text = (key, place) => {
    const numbers = report.decoded = report.decoded || {};
    if (!numbers[key]) numbers[key] = decode(report[key], count);
    return report.texts[numbers[key][place]];
  };
  return view;
}

const views = data.reports.flatMap((report) => report.memory.devices.map((device, i) => makeView(report, i)));
const state = {view: views[0], other: null, axis: 'nodes', place: 0, hidden: new Set(['allocated, expandable']),
  graph: null, window: null, drawn: null, timer: 0};

// ---- tables

function showPeak() {
  const device = state.view.device, memory = state.view.report.memory;
  byId('peak-size').textContent = bytesText(device.peak_bytes);
  byId('peak-metric').textContent = device.model + ' peak' + (memory.unknown_storages > 0 ? ', at least' : '');
  const limit = device.allocator_bytes;
  byId('peak-bytes').textContent = exactText(device.peak_bytes);
  byId('peak-bytes').dataset.bytes = String(device.peak_bytes);
  const limits = limit === null ? [] : [['limit', bytesText(limit) + ', ' + percentText(device.peak_bytes, limit) + ' taken']];
  fillList(byId('peak-place'), [
    ['at node', nodeCode(device.node)],
    ['place', grouped(device.position + 1) + ' of ' + grouped(memory.nodes)],
    ['module', device.module_path === '' ? 'none' : code(device.module_path)],
    ['phase', state.view.text('phase', device.position)],
    ['source', device.source === '' ? 'unknown' : code(device.source)],
    ...limits,
    ['graph', code(state.view.name)]]);
  document.title = 'Peak memory: ' + bytesText(device.peak_bytes) + ' ' + device.model;
}

const typeText = (row) => row.label === '' ? row.type : row.label;

function showLargest() {
  const heads = [['', 'number'], ['bytes', 'number exact'], ['made by'], ['type'], ['class'], ['phase'], ['module']];
  fillTable(byId('top-five'), heads, state.view.device.top.slice(0, 5).map((row) => [
    bytesText(row.bytes), exactText(row.bytes), nodeCode(row.node), code(typeText(row)), row['class'], row.phase,
    code(row.module_path)]));
}

// Neighbours of the same size in one row, as in the text report.
function foldShares(shares) {
  const folded = [];
  for (let i = 0; i < shares.length;) {
    let end = i + 1;
    while (end < shares.length && shares[end].bytes === shares[i].bytes && shares[end].storages === shares[i].storages) ++end;
    const count = end - i > 2 ? end - i : 1;
    folded.push(count === 1 ? shares[i] : {name: shares[i].name + ' .. ' + shares[end - 1].name + ' (' + count + ' alike)',
      bytes: count * shares[i].bytes, storages: count * shares[i].storages});
    i += count;
  }
  return folded;
}

function showShares(id, shares, whole) {
  const largest = Math.max(1, ...shares.map((share) => share.bytes));
  const rows = shares.map((share) => {
    const bar = element('span', {kind: 'bar'});
    bar.style.width = (100 * share.bytes / largest) + '%';
    if (id === 'by-class') bar.style.background = colorOf(share.name);
    return [code(share.name), bytesText(share.bytes), percentText(share.bytes, whole), bar];
  });
  const heads = [['name'], ['bytes', 'number'], ['share', 'number'], ['', 'share']];
  const table = byId(id), shown = 16;
  fillTable(table, heads, rows);
  const after = table.nextElementSibling;
  if (after) after.remove();
  if (rows.length <= shown) return;
  const rest = element('table');
  fillTable(rest, heads, rows.slice(shown));
  for (const row of [...table.tBodies[0].rows].slice(shown)) row.remove();
  table.after(element('details', {}, [element('summary', {text: (rows.length - shown) + ' more'}), rest]));
}

function peakRows(device) {
  const rows = [['ideal', device.ideal], ['requested', device.requested]];
  for (const metric of ['allocated', 'active', 'reserved']) {
    for (const run of device.allocator) rows.push([metric + ', ' + run.segments + ' segments', run[metric]]);
  }
  return rows;
}

function showPeaks() {
  const rows = peakRows(state.view.device);
  const reached = (peak) => peak.node === '' ? 'before the first node' : nodeCode(peak.node);
  if (state.other === null) {
    fillTable(byId('peaks'), [['peak'], ['', 'number'], ['bytes', 'number exact'], ['reached at']],
      rows.map(([name, peak]) => [name, bytesText(peak.peak_bytes), exactText(peak.peak_bytes), reached(peak)]));
  } else {
    const others = new Map(peakRows(state.other.device));
    fillTable(byId('peaks'), [['peak'], ['this report', 'number'], ['', 'number exact'], ['overlaid', 'number'],
      ['', 'number exact'], ['overlaid less this', 'number'], ['reached at'], ['overlaid at']], rows.map(([name, peak]) => {
      const other = others.get(name);
      if (!other) return [name, bytesText(peak.peak_bytes), exactText(peak.peak_bytes), '', '', '', reached(peak), ''];
      return [name, bytesText(peak.peak_bytes), exactText(peak.peak_bytes), bytesText(other.peak_bytes),
        exactText(other.peak_bytes), growthText(other.peak_bytes - peak.peak_bytes), reached(peak), reached(other)];
    }));
  }
  showNotes();
}

function showNotes() {
  const device = state.view.device, memory = state.view.report.memory, notes = [];
  for (const run of device.allocator) {
    if (run.out_of_memory === '') continue;
    notes.push('Out of memory with ' + run.segments + ' segments at %' + run.out_of_memory + ', which asks for ' +
      bytesText(run.failed_bytes) + '.');
  }
  if (memory.unknown_storages > 0) {
    notes.push('Storages of unknown size: ' + memory.unknown_storages + '. Each peak is a lower bound.');
  }
  if (memory.profile !== '') {
    notes.push('Hidden memory by ' + memory.profile + ': ' + grouped(device.hidden.blocks) + ' blocks, of which ' +
      grouped(device.hidden.estimates) + ' by estimate; unknown for ' + grouped(device.hidden.unknown.length) + ' calls.');
  } else if (device.allocator.length > 0) {
    notes.push('Without hidden memory of kernels: no device was named.');
  }
  byId('notes').textContent = printable(notes.join(' '));
}

function showStorages() {
  const device = state.view.device;
  byId('storages-count').textContent = 'The largest ' + grouped(device.top.length) + ' of ' + grouped(device.live_storages) + '.';
  const lifetime = (row) => {
    const span = grouped(row.first_position + 1) + ' to ' + grouped(row.last_position + 1);
    return element('span', {text: span, title: '%' + row.first + ' .. %' + row.last});
  };
  fillTable(byId('storages'), [['', 'number'], ['bytes', 'number exact'], ['made by'], ['type'], ['class'], ['phase'],
    ['operator'], ['module'], ['live at nodes', 'number'], ['first'], ['last'], ['source']], device.top.map((row) => [
    bytesText(row.bytes), exactText(row.bytes), nodeCode(row.node), code(typeText(row)), row['class'], row.phase,
    code(row.target), code(row.module_path), lifetime(row), nodeCode(row.first), nodeCode(row.last), code(row.source)]));
}

function showOutside() {
  const device = state.view.device;
  byId('outside-section').hidden = device.outside.length === 0;
  const rows = device.outside.map((row) => [row.name, row.bytes === null ? 'unknown' : bytesText(row.bytes),
    row.bytes === null ? '' : exactText(row.bytes), row.evidence, row.communicators > 0 ? String(row.communicators) : '']);
  if (device.device_bytes !== null) {
    rows.push(['the device has', bytesText(device.device_bytes), exactText(device.device_bytes), '', '']);
  }
  fillTable(byId('outside'), [['what'], ['', 'number'], ['bytes', 'number exact'], ['rests on'], ['communicators', 'number']], rows);
}

function showOptions() {
  const rows = [];
  for (const [group, values] of [['', data.options], ['limit ', data.gates]]) {
    for (const [key, value] of Object.entries(values || {})) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      if (text !== '' && text !== 'null' && text !== '[]' && text !== '{}') rows.push([group + key.replace(/_/g, ' '), code(text)]);
    }
  }
  byId('options-section').hidden = rows.length === 0;
  fillList(byId('options'), rows);
}

// ---- timeline

const colorOf = (name) => {
  const key = '--' + name.replace(/ /g, '-');
  return getComputedStyle(document.documentElement).getPropertyValue(key).trim() || '#888888';
};

// x of the place a node begins at, and the place at an x. On the nodes' axis a node is as wide as 1 and begins at the
// number it has for people.
function placeToX(view, place) { return state.axis === 'nodes' ? place + 1 : 100 * place / view.count; }
function xToPlace(view, x) {
  return state.axis === 'nodes' ? Math.floor(x) - 1 : Math.floor(x / 100 * view.count + 1e-9);
}
function endOfAxis() {
  return Math.max(...[state.view, state.other].filter((view) => view).map((view) => placeToX(view, view.count)));
}
const startOfAxis = () => placeToX(state.view, 0);

// The largest and smallest place of each of `columns` parts of [first, last).
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

// The x that are drawn: extremes of the whole, more of them in the window, each peak, and the end.
function drawnX(window) {
  const xs = [];
  for (const view of [state.view, state.other]) {
    if (view === null) continue;
    const places = [view.device.position], values = view.curves().requested;
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

// Series as they are drawn: areas from the top of the stack down, each over the rest of the one before; then lines.
function series() {
  const curves = state.view.curves();
  const areas = curves.classes.map((curve) => ({name: curve.name, values: curve.values, isArea: true})).reverse();
  const lines = curves.lines.map((line) => ({...line, view: state.view}));
  const overlaid = state.other === null ? [] : state.other.curves().lines.filter((line) => line.name !== 'allocated, expandable')
    .map((line) => ({...line, name: 'overlaid: ' + line.name, view: state.other, color: 'other',
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

// Powers of two, so that labels are round in binary units.
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
        strokePattern: one.dash ? [5, 3] : null, showInRangeSelector: one.name === 'requested'};
  }
  return {labels: ['x'].concat(list.map((one) => one.name)), series: options,
    visibility: list.map((one) => !state.hidden.has(one.name)),
    axes: {y: {ticker: byteTicks, axisLabelWidth: 72}, x: {axisLabelFormatter: nodeLabel, axisLabelWidth: 70}},
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
  state.graph = null;  // until it is made: it draws while it is being made
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

// More steps of what is looked at, once the user has stopped moving.
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
  const middle = middleOf(state.view.device.position);
  setWindow(middle - width / 2, middle + width / 2);
  showPlace(state.view.device.position);
}

function placeMark(mark, place) {
  const area = state.graph.getArea(), x = state.graph.toDomXCoord(middleOf(place));
  mark.hidden = !(x >= area.x - 1 && x <= area.x + area.w + 1);
  mark.style.left = x + 'px';
  mark.style.height = (area.y + area.h) + 'px';
  return x > area.x + area.w - 120;
}

function placeMarks() {
  const mark = byId('peak-mark');
  mark.firstElementChild.textContent = 'peak ' + bytesText(state.view.device.peak_bytes);
  mark.classList.toggle('left', placeMark(mark, state.view.device.position));
  placeMark(byId('cursor'), state.place);
}

// ---- the node that is looked at

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
  for (const one of state.list) {
    const value = valueAt(one.view || view, one.values, x), cell = state.cells.get(one.name);
    cell.textContent = value === null ? '' : bytesText(value);
    cell.title = value === null ? '' : exactText(value);
    cell.dataset.bytes = value === null ? '' : String(value);
  }
  placeMark(byId('cursor'), state.place);
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

// The node under the pointer; of several in one pixel the one that holds most.
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
  showPlace(state.view.device.position);
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
    if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls otherwise
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

// ---- all of it

function showAll() {
  showPeak();
  showLargest();
  const device = state.view.device;
  showShares('by-class', device.by_class, device.peak_bytes);
  showShares('by-module', device.by_module, device.peak_bytes);
  showShares('by-layer', foldShares(device.by_layer), device.peak_bytes);
  showPeaks();
  showStorages();
  showOutside();
  showTimeline();
}

function start() {
  if (views.length === 0) {
    byId('main').replaceChildren(element('p', {text: 'There are no tensors, so there is no peak.'}));
    return;
  }
  const option = (view, i) => { const made = element('option', {text: view.name}); made.value = String(i); return made; };
  byId('report').append(...views.map(option));
  const none = element('option', {text: 'nothing'});
  none.value = '';
  byId('other').append(none, ...views.map(option));
  byId('report-label').hidden = byId('other-label').hidden = views.length < 2;
  byId('axis-label').hidden = views.length < 2;
  const second = views.findIndex((view) => view.report.file !== views[0].report.file);
  if (second > 0) {
    state.other = views[second];
    byId('other').value = String(second);
  }
  showOptions();
  listen();
  showAll();
}

start();
}());
