// One history: unpacked from the page's text, and the sums over it.  The state at moment m is that after
// event m; a block is allocated at m where born <= m < freed.

async function readTrace(text) {
  if (!globalThis.DecompressionStream)
    throw new Error("this browser is too old, its DecompressionStream is missing");
  const deflated = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return new Trace(header, readColumns(buffer, aligned(8 + length), header.columns));
}

function readColumns(buffer, start, listed) {
  const columns = {};
  let place = start;
  for (const [name, kind, rows] of listed) {
    columns[name] =
      kind === "f8" ? new Float64Array(buffer, place, rows) : summed(new Int32Array(buffer, place, rows));
    place = aligned(place + columns[name].byteLength);
  }
  return columns;
}

function aligned(length) {
  return Math.ceil(length / 8) * 8;
}

function summed(differences) {
  for (let row = 1; row < differences.length; row++) differences[row] += differences[row - 1];
  return differences;
}

class Trace {
  constructor(header, columns) {
    Object.assign(this, header, columns);
    this.spans = this.spans.map(([first, phase, step, mark, stack, outside]) => ({
      first,
      phase,
      step,
      mark,
      stack,
      outside,
    }));
    this.still = !this.moments && this.born.length > 0;
    if (this.still) this.holdStill();
    this.curves = this.categoryCurves();
    this.allocated = totalOf([...this.curves.values()], this.moments);
    this.reserved = curve(
      this.moments,
      this.segment_born,
      this.segment_lived,
      (row) => this.segment_size[row],
    );
    this.peak = this.allocated.indexOf(this.allocated.reduce((most, each) => Math.max(most, each), 0));
  }

  // A snapshot without a history: one moment, at which all that it holds is live.
  holdStill() {
    this.moments = 1;
    this.lived.fill(2);
    this.segment_lived.fill(2);
  }

  // The present categories' allocated bytes at each moment, by the category's number, in its order.
  categoryCurves() {
    const changes = new Map();
    for (const category of [...new Set(this.category)].sort((a, b) => a - b)) {
      changes.set(category, new Float64Array(this.moments + 1));
    }
    for (let row = 0; row < this.kind.length; row++) {
      const kind = this.kind[row],
        change = changes.get(this.category[kind]);
      change[Math.max(this.born[row], 0)] += this.size[kind];
      change[Math.min(this.born[row] + this.lived[row], this.moments)] -= this.size[kind];
    }
    for (const [category, change] of changes) changes.set(category, summed(change).subarray(0, this.moments));
    return changes;
  }

  // The rows of the blocks that are allocated at a moment.
  liveAt(moment) {
    const rows = [];
    for (let row = 0; row < this.born.length && this.born[row] <= moment; row++) {
      if (this.born[row] + this.lived[row] > moment) rows.push(row);
    }
    return rows;
  }

  // The number of the span that a moment lies in: the last one that begins at it or before.
  spanAt(moment) {
    let low = 0,
      high = this.spans.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.spans[middle].first <= moment) low = middle;
      else high = middle;
    }
    return low;
  }

  freed(row) {
    const moment = this.born[row] + this.lived[row];
    return moment < this.moments ? moment : null;
  }

  // What the process holds on the card beside the allocator's memory; null: not known.
  outsideAt(moment) {
    return this.spans[this.spanAt(moment)]?.outside ?? null;
  }

  // Bytes at a moment by category's number, zeroes included.
  categoriesAt(moment) {
    return new Map([...this.curves].map(([category, curve]) => [category, curve[moment]]));
  }

  // The line of source that a kind of block counts for: ["train.py:41 in main", "loss.backward()"].
  lineOf(kind) {
    return this.lines[this.line_of_stack[this.stack[kind]]];
  }
}

function curve(moments, born, lived, sizeOf) {
  const change = new Float64Array(moments + 1);
  for (let row = 0; row < born.length; row++) {
    change[Math.max(born[row], 0)] += sizeOf(row);
    change[Math.min(born[row] + lived[row], moments)] -= sizeOf(row);
  }
  return summed(change).subarray(0, moments);
}

function totalOf(curves, moments) {
  const total = new Float64Array(moments);
  for (const each of curves) for (let moment = 0; moment < moments; moment++) total[moment] += each[moment];
  return total;
}
