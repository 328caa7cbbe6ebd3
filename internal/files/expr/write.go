package expr

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxOutput bounds the result of an expression: a short one can contain a list many
// times, each written in full.
const maxOutput = 16 << 20

// writer writes a value as JSON, with the keys of maps in order.
type writer struct {
	out     []byte
	fault   Fault
	message string
}

func (w *writer) fail(fault Fault, format string, args ...any) {
	if w.fault == "" {
		w.fault, w.message = fault, fmt.Sprintf(format, args...)
	}
}

func (w *writer) value(v ref.Val) {
	if len(w.out) > maxOutput {
		w.fail(TooCostly, "")
	}
	if w.fault != "" {
		return
	}
	switch v := v.(type) {
	case types.Null:
		w.out = append(w.out, "null"...)
	case types.Bool:
		w.out = strconv.AppendBool(w.out, bool(v))
	case types.Int:
		w.out = strconv.AppendInt(w.out, int64(v), 10)
	case types.Uint:
		w.out = strconv.AppendUint(w.out, uint64(v), 10)
	case types.Double:
		w.number(float64(v))
	case types.String:
		w.text(string(v))
	case traits.Lister:
		w.list(v)
	case traits.Mapper:
		w.mapping(v)
	default:
		w.fail(WrongResult, "it gives a %s, which JSON does not have", v.Type().TypeName())
	}
}

func (w *writer) number(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.fail(WrongResult, "it gives %v, which JSON does not have", f)
		return
	}
	w.out = strconv.AppendFloat(w.out, f, 'g', -1, 64)
}

func (w *writer) text(s string) {
	// Encoding a string cannot fail.
	quoted, _ := json.Marshal(s)
	w.out = append(w.out, quoted...)
}

func (w *writer) list(l traits.Lister) {
	w.out = append(w.out, '[')
	for i, it := 0, l.Iterator(); it.HasNext() == types.True && w.fault == ""; i++ {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.value(it.Next())
	}
	w.out = append(w.out, ']')
}

func (w *writer) mapping(m traits.Mapper) {
	var keys []string
	for it := m.Iterator(); it.HasNext() == types.True; {
		key, ok := it.Next().(types.String)
		if !ok {
			w.fail(WrongResult, "it gives a mapping with a key that is no text, which JSON does not have")
			return
		}
		keys = append(keys, string(key))
	}
	slices.SortFunc(keys, strings.Compare)
	w.out = append(w.out, '{')
	for i, key := range keys {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.text(key)
		w.out = append(w.out, ':')
		w.value(m.Get(types.String(key)))
	}
	w.out = append(w.out, '}')
}
