package wire

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"github.com/pawlrun/pawl/llm"
)

// PrefixKeys tells the prefixes of requests apart for [llm.Memo.Prefix], at the
// price of a quick hash. Its keys mean nothing in another process.
type PrefixKeys struct{ seed maphash.Seed }

// NewPrefixKeys returns keys with a seed of their own.
func NewPrefixKeys() PrefixKeys { return PrefixKeys{seed: maphash.MakeSeed()} }

// Key depends on all that stands before a request's messages: system text,
// tools, schema and cache key.
func (k PrefixKeys) Key(req *llm.Request) string {
	var h maphash.Hash
	h.SetSeed(k.seed)
	writeKeyed(&h, req.System)
	writeKeyed(&h, req.CacheKey)
	writeSize(&h, len(req.Schema))
	_, _ = h.Write(req.Schema)
	writeSize(&h, len(req.Tools))
	for i := range req.Tools {
		writeKeyed(&h, req.Tools[i].Name)
		writeKeyed(&h, req.Tools[i].Description)
		writeSize(&h, len(req.Tools[i].Schema))
		_, _ = h.Write(req.Tools[i].Schema)
	}
	for _, name := range req.ProviderTools {
		writeKeyed(&h, name)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// writeKeyed writes a value behind its length, so that no two lists of values
// give the same bytes.
func writeKeyed(h *maphash.Hash, value string) {
	writeSize(h, len(value))
	_, _ = h.WriteString(value)
}

func writeSize(h *maphash.Hash, n int) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(n))
	_, _ = h.Write(size[:])
}
