package sqlite

import (
	"encoding/binary"
	"math/bits"

	"github.com/pawlrun/pawl/journal"
)

// maxPacked and maxPackedBytes bound the content of one row: reading one event reads
// its row, and a larger event has a row of its own.
const (
	maxPacked      = 64
	maxPackedBytes = 64 << 10
)

// insertCommits writes events of a run after a pos, in one row if they are few. They
// are encoded directly into SQLite's memory.
func (c *conn) insertCommits(rid, newest int64, records []journal.Record) error {
	for len(records) > 0 {
		n, size := fitting(records)
		rows := records[:n]
		records, newest = records[n:], newest+int64(n)
		s, err := c.prepare(insertCommit)
		if err != nil {
			return err
		}
		s.bindInt(newest)
		s.bindInt(rid)
		s.bindInt(rows[n-1].Seq)
		s.bindInt(int64(n))
		s.bindInt(kindsOfRecords(rows))
		s.bindRecords(rows, size)
		if _, err := c.run(s); err != nil {
			return err
		}
	}
	return nil
}

// fitting returns how many of the records go into one row, and their size there.
func fitting(records []journal.Record) (n, size int) {
	for i := range records {
		more := packedSize(&records[i])
		if i == maxPacked || i > 0 && size+more > maxPackedBytes {
			return i, size
		}
		size += more
	}
	return len(records), size
}

// kindsOf returns a set of types with a bit for each. Two types may share a bit, so it
// only proves that a row does not contain a type.
func kindsOf[T ~string](types ...T) (kinds int64) {
	for _, t := range types {
		hash := uint32(2166136261) // FNV-1a
		for i := range len(t) {
			hash = (hash ^ uint32(t[i])) * 16777619
		}
		kinds |= 1 << (hash % 64)
	}
	return kinds
}

func kindsOfRecords(records []journal.Record) (kinds int64) {
	for i := range records {
		kinds |= kindsOf(records[i].Type)
	}
	return kinds
}

// pack appends a record: its type and its body, each after its length.
func pack(b []byte, r *journal.Record) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(r.Type))), r.Type...)
	return append(binary.AppendUvarint(b, uint64(len(r.Body))), r.Body...)
}

func packedSize(r *journal.Record) int {
	return lengthSize(len(r.Type)) + len(r.Type) + lengthSize(len(r.Body)) + len(r.Body)
}

// lengthSize returns the number of bytes of an encoded length.
func lengthSize(n int) int { return (bits.Len64(uint64(n)|1) + 6) / 7 }

// packed is a row of events as read. n is 0 for a row of an older version, which is a
// single event; only such a row has typ.
type packed struct {
	last journal.Record
	n    int64
	typ  string
}

// cut yields the events of a row in order until yield returns false. The bodies are
// slices of the row's.
func (p *packed) cut(types map[string]string, yield func(journal.Record) bool) error {
	r, rest := p.last, p.last.Body
	if p.n == 0 {
		r.Type = p.typ
		yield(r)
		return nil
	}
	for left := p.n - 1; left >= 0; left-- {
		r.Pos, r.Seq = p.last.Pos-left, p.last.Seq-left
		typ, after, ok := field(rest)
		if ok {
			r.Body, after, ok = field(after)
		}
		if rest = after; !ok || left == 0 && len(rest) > 0 {
			return &journal.CorruptError{Run: r.Run, Seq: r.Seq, What: "its commit cannot be taken apart"}
		}
		if r.Type, ok = types[string(typ)]; !ok {
			r.Type = string(typ)
			types[r.Type] = r.Type
		}
		if !yield(r) {
			return nil
		}
	}
	return nil
}

// field returns the bytes after an encoded length, and the rest.
func field(b []byte) (value, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}
