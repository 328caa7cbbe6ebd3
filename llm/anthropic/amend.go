package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/llm/internal/wire"
)

// amendment collects deltas of an unknown kind for an item. The item is rebuilt once,
// when it ends, however many deltas there were.
type amendment struct {
	members map[string]json.RawMessage
	// grown holds the members that text was appended to.
	grown map[string]*strings.Builder
}

// amend applies a delta of an unknown kind: its members belong to the block, and text
// is appended to text. Only items receive such deltas.
func (b *block) amend(object []byte) error {
	if b.kind != kindItem {
		return nil
	}
	if b.amended == nil {
		a := &amendment{grown: map[string]*strings.Builder{}}
		if err := json.Unmarshal(b.raw, &a.members); err != nil {
			return fmt.Errorf("%w: block %d: %w", errMalformed, b.index, err)
		}
		b.amended = a
	}
	m := wire.ScanObject(object)
	for m.Next() {
		if key := string(m.Key()); key != "type" {
			b.amended.take(key, m.Value())
		}
	}
	return m.Err()
}

func (a *amendment) take(key string, value []byte) {
	text, isText := a.grown[key], value[0] == '"'
	before := a.members[key]
	switch {
	case isText && text != nil:
		text.WriteString(wire.Text(value))
	case isText && len(before) > 0 && before[0] == '"':
		text = &strings.Builder{}
		text.WriteString(wire.Text(before))
		text.WriteString(wire.Text(value))
		a.grown[key] = text
	default:
		delete(a.grown, key)
		a.members[key] = append(json.RawMessage(nil), value...)
	}
}

// settle rebuilds an item from its deltas.
func (b *block) settle() error {
	if b.amended == nil {
		return nil
	}
	for key, text := range b.amended.grown {
		b.amended.members[key] = wire.AppendQuoted(nil, text.String())
	}
	raw, err := json.Marshal(b.amended.members)
	if err != nil {
		return fmt.Errorf("%w: block %d: %w", errMalformed, b.index, err)
	}
	b.raw, b.amended = raw, nil
	return nil
}
