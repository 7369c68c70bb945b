// The figures and tables of the HTML report, and its start. timeline.js is included before this
// file.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const classNames = ['parameter', 'buffer', 'constant', 'optimizer state', 'input', 'gradient', 'saved value',
  'recomputed', 'communication', 'temporary', 'workspace'];
const wholeColumns = 700;   // points of the whole curve, for the range selector below the chart
const windowColumns = 1600; // points of the visible part

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

// ---- elements: text from files is inserted only as text, never as HTML

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

// Decodes text of encode_differences(): see html.h.
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

// Returns a view of one device of a graph. Series with one value per node are decoded at their
// first use.
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
      if (timeline.allocated[segments] === '') continue;  // not from the drawn step
      decoded.lines.push({name: 'allocated, ' + segments, color: 'allocated', dash: segments !== 'classic',
        values: decode(timeline.allocated[segments], count)});
      decoded.lines.push({name: 'reserved, ' + segments, color: 'reserved', dash: segments !== 'classic',
        values: decode(timeline.reserved[segments], count)});
    }
    view.decoded = decoded;
    return decoded;
  };
  // If true, the chart shows the first step, because memory ran out there before the measured step.
  view.isFirstStep = timeline.step === 1;
  view.peakPlace = () => {
    if (!view.isFirstStep) return device.position;
    const values = view.curves().requested;
    return values.indexOf(values.reduce((most, value) => Math.max(most, value), 0));
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
  byId('peak-metric').textContent = device.model + ' peak' + 
    (memory.unknown_storages > 0 || (device.model !== 'ideal' && device.hidden.unknown.length > 0) ? ', at least' : '');
  const limit = device.allocator_bytes;
  byId('peak-bytes').textContent = exactText(device.peak_bytes);
  byId('peak-bytes').dataset.bytes = String(device.peak_bytes);
  const limits = limit === null ? [] :
    [['limit', bytesText(limit) + ', ' + percentText(device.peak_bytes, limit) + ' taken']];
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

function showVerdict() {
  const {fit, advice} = state.view.device;
  byId('verdict').hidden = fit === null && advice === null;
  byId('verdict').classList.toggle('bad', fit === null || !fit.fits);
  byId('verdict-text').textContent = fit === null ? 'Above the budget' : printable(fit.verdict);
  byId('advice').textContent = advice === null ? '' : printable(advice.text);
}

function showFailures() {
  byId('failures').hidden = data.failures.length === 0;
  byId('failures').replaceChildren(...data.failures.map((failure) => element('p', {}, [
    'not measured: ', code(failure.file), ': ' + printable(failure.reasons.join('; '))])));
}

const typeText = (row) => row.label === '' ? row.type : row.label;

function showLargest() {
  const heads = [['', 'number'], ['bytes', 'number exact'], ['made by'], ['type'], ['class'], ['phase'], ['module']];
  fillTable(byId('top-five'), heads, state.view.device.top.slice(0, 5).map((row) => [
    bytesText(row.bytes), exactText(row.bytes), nodeCode(row.node), code(typeText(row)), row['class'], row.phase,
    code(row.module_path)]));
}

// Merges neighbours of equal size into one row, as in the text report.
function foldShares(shares) {
  const folded = [];
  for (let i = 0; i < shares.length;) {
    const first = shares[i];
    let end = i + 1;
    while (end < shares.length && shares[end].bytes === first.bytes && shares[end].storages === first.storages) ++end;
    const count = end - i > 2 ? end - i : 1;
    folded.push(count === 1 ? first : {name: first.name + ' .. ' + shares[end - 1].name + ' (' + count + ' alike)',
      bytes: count * first.bytes, storages: count * first.storages});
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
  if (device.arena !== null) rows.push(['arena', {peak_bytes: device.arena.bytes, node: null}]);
  return rows;
}

function showPeaks() {
  const rows = peakRows(state.view.device);
  const reached = (peak) => {
    if (peak.node === null) return 'planned ahead';
    return peak.node === '' ? 'before the first node' : nodeCode(peak.node);
  };
  if (state.other === null) {
    fillTable(byId('peaks'), [['peak'], ['', 'number'], ['bytes', 'number exact'], ['reached at']],
      rows.map(([name, peak]) => [name, bytesText(peak.peak_bytes), exactText(peak.peak_bytes), reached(peak)]));
  } else {
    const others = new Map(peakRows(state.other.device));
    fillTable(byId('peaks'), [['peak'], ['this report', 'number'], ['', 'number exact'], ['overlaid', 'number'],
      ['', 'number exact'], ['overlaid minus this', 'number'], ['reached at'], ['overlaid at']],
    rows.map(([name, peak]) => {
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
    notes.push('Out of memory with ' + run.segments + ' segments at %' + run.out_of_memory + ' of step ' + run.steps +
      ', which requests ' + bytesText(run.failed_bytes) + '.');
  }
  if (state.view.isFirstStep) {
    notes.push('The chart shows step 1, in which memory ran out. The peaks and storages are those of a later step.');
  }
  if (device.ideal_range !== null) {
    const {min_bytes: least, max_bytes: most} = device.ideal_range;
    notes.push('Over the ranges of the symbols, the ideal peak is ' +
      (most === null ? 'at least ' + bytesText(least) + ', with no upper bound' : bytesText(least) + ' to ' + bytesText(most)) +
      '.');
  }
  if (memory.unknown_storages > 0) {
    notes.push('Storages of unknown size: ' + memory.unknown_storages + '. Each peak is a lower bound.');
  }
  if (memory.profile !== '') {
    const hidden = device.hidden;
    notes.push('Workspaces of kernels and other hidden memory, by profile ' + memory.profile + ': ' +
      grouped(hidden.blocks) + ' blocks. The sizes of ' + grouped(hidden.estimates) + ' blocks are estimates. ' +
      'The workspaces of ' + grouped(hidden.unknown.length) + ' calls are unknown.');
  } else if (device.allocator.length > 0) {
    notes.push('The peaks omit the workspaces of kernels, because --device was not given.');
  }
  byId('notes').textContent = printable(notes.join(' '));
}

function showStorages() {
  const device = state.view.device;
  byId('storages-count').textContent =
    'The ' + grouped(device.top.length) + ' largest of ' + grouped(device.live_storages) + ' storages.';
  const lifetime = (row) => {
    const span = grouped(row.first_position + 1) + ' to ' + grouped(row.last_position + 1);
    return element('span', {text: span, title: '%' + row.first + ' .. %' + row.last});
  };
  fillTable(byId('storages'), [['', 'number'], ['bytes', 'number exact'], ['made by'], ['type'], ['class'], ['phase'],
    ['operator'], ['module'], ['live at nodes', 'number'], ['first'], ['last'], ['source']], device.top.map((row) => [
    bytesText(row.bytes), exactText(row.bytes), nodeCode(row.node), code(typeText(row)), row['class'], row.phase,
    code(row.target), code(row.module_path), lifetime(row), nodeCode(row.first), nodeCode(row.last),
    code(row.source || row.fqn)]));
}

// Lists the collectives of several tensors. The most bytes live at the peak come first, then the
// most bytes.
function showBuckets() {
  const rows = state.view.device.buckets.slice();
  byId('buckets-section').hidden = rows.length === 0;
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  byId('buckets-count').textContent = grouped(rows.length) + ' collectives of ' + grouped(sum('tensors')) +
    ' tensors. Buffers, results and copies take ' + bytesText(sum('bytes')) + ', of which ' +
    bytesText(sum('live_bytes')) + ' are live at the peak. Bars at the top of the chart show where each collective runs.';
  rows.sort((a, b) => b.live_bytes - a.live_bytes || b.bytes - a.bytes || a.first_position - b.first_position);
  fillTable(byId('buckets'), [['live at the peak', 'number'], ['buffers, results and copies', 'number'],
    ['bytes', 'number exact'], ['collective'], ['tensors', 'number'], ['runs at nodes', 'number']], rows.map((row) => [
    bytesText(row.live_bytes), bytesText(row.bytes), exactText(row.bytes), nodeCode(row.node), grouped(row.tensors),
    grouped(row.first_position + 1) + ' to ' + grouped(row.last_position + 1)]));
}

function showRecompute() {
  const rows = state.view.device.recompute;
  const hasSeconds = rows.some((row) => row.seconds !== null);
  byId('recompute-section').hidden = rows.length === 0;
  const columns = [['frees', 'number'], ['bytes', 'number exact'], ['calls', 'number'], ['GFLOP', 'number'],
    ['bytes moved', 'number'], ['example'], ['operator'], ['module']];
  if (hasSeconds) columns.splice(5, 0, ['time (roofline), ms', 'number']);
  fillTable(byId('recompute'), columns, rows.map((row) => {
    const cells = [bytesText(row.bytes), exactText(row.bytes), grouped(row.nodes.length),
      row.flops === null ? 'unknown' : (row.flops / 1e9).toPrecision(4),
      row.moved_bytes === null ? 'unknown' : bytesText(row.moved_bytes), nodeCode(row.nodes[0]), code(row.target),
      code(row.module_path)];
    if (hasSeconds) cells.splice(5, 0, row.seconds === null ? 'unknown' : (row.seconds * 1e3).toPrecision(4));
    return cells;
  }));
}

function showOutside() {
  const device = state.view.device;
  byId('outside-section').hidden = device.outside.length === 0;
  const rows = device.outside.map((row) => [
    row.name, row.bytes === null ? 'unknown' : bytesText(row.bytes), row.bytes === null ? '' : exactText(row.bytes),
    row.evidence, row.communicators > 0 ? String(row.communicators) : '']);
  if (device.device_bytes !== null) {
    rows.push(['the device has', bytesText(device.device_bytes), exactText(device.device_bytes), '', '']);
  }
  fillTable(byId('outside'), [['memory'], ['', 'number'], ['bytes', 'number exact'], ['evidence'],
    ['communicators', 'number']], rows);
}

function showOptions() {
  const rows = [];
  for (const [group, values] of [['', data.options], ['limit ', data.gates]]) {
    for (const [key, value] of Object.entries(values || {})) {
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      if (!['', 'null', '[]', '{}'].includes(text)) rows.push([group + key.replace(/_/g, ' '), code(text)]);
    }
  }
  byId('options-section').hidden = rows.length === 0;
  fillList(byId('options'), rows);
}

// ---- the whole page

function showAll() {
  showVerdict();
  showPeak();
  showLargest();
  const device = state.view.device;
  showShares('by-class', device.by_class, device.peak_bytes);
  showShares('by-module', device.by_module, device.peak_bytes);
  showShares('by-layer', foldShares(device.by_layer), device.peak_bytes);
  showPeaks();
  showStorages();
  showBuckets();
  showRecompute();
  showOutside();
  showTimeline();
}

function start() {
  showFailures();
  if (views.length === 0) {
    byId('main').replaceChildren(byId('failures'),
      element('p', {text: data.reports.length > 0 ? 'There are no tensors, so there is no peak.' : 'No graph was measured.'}));
    return;
  }
  const option = (view, i) => {
    const made = element('option', {text: view.name});
    made.value = String(i);
    return made;
  };
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
