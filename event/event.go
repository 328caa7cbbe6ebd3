package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Version is the version of the vocabulary. A journal with a newer version is rejected.
const Version = 1

// Type is the name of a kind of event in JSON.
type Type string

// Data is the payload of an event: one of this package's structs.
type Data interface{ EventType() Type }

// Stepped is a payload that may concern a step of a workflow.
type Stepped interface {
	Data
	// OfStep returns the step's namespaced id, empty for none.
	OfStep() string
}

// Event is one durable, numbered record in a run's journal.
type Event struct {
	// Pos is the position in the whole store, in commit order; the store assigns it.
	Pos int64
	// Seq is the number within the run, from 1.
	Seq    int64
	Run    string
	Parent string
	Time   time.Time
	// SkippedMs is the part of the time since the run's previous event that passed on
	// the clock but not for the driving process: the machine was asleep, or its clock
	// was set forward. It does not count for the run's limits on time.
	SkippedMs int64
	// Cycle is the cycle that the event belongs to, 0 for none.
	Cycle int
	// Step is the namespaced id of the step of a workflow that the event belongs to:
	// the run performs this step, or the event of the workflow concerns it.
	Step string
	Data Data
	// Prev is the hash of the run's previous event as stored, empty for the first.
	// Accidental changes and simple edits break this chain.
	Prev string
}

// Type returns the name of the event's kind.
func (e *Event) Type() Type { return e.Data.EventType() }

// envelope fixes the order of members in the stored form.
type envelope struct {
	Pos       int64           `json:"pos,omitempty"`
	Seq       int64           `json:"seq"`
	Run       string          `json:"run"`
	Parent    string          `json:"parent,omitempty"`
	Time      time.Time       `json:"time"`
	SkippedMs int64           `json:"skippedMs,omitempty"`
	Type      Type            `json:"type"`
	Cycle     int             `json:"cycle,omitempty"`
	Step      string          `json:"step,omitempty"`
	Data      json.RawMessage `json:"data"`
	Prev      string          `json:"prev,omitempty"`
}

// Encode returns the stored form: one JSON object without pos, which the store knows
// only at the commit and stores separately.
func Encode(e *Event) ([]byte, error) { return encode(nil, e, false) }

// Append appends the stored form of an event to b.
func Append(b []byte, e *Event) ([]byte, error) { return encode(b, e, false) }

// abridged is a payload that is stored without what follows from the rest.
type abridged interface{ stored(shown bool) any }

func encode(b []byte, e *Event, shown bool) ([]byte, error) {
	if y := e.Time.UTC().Year(); y < 0 || y > 9999 {
		return nil, fmt.Errorf("event: encode %s: the year %d has no form in JSON", e.Type(), y)
	}
	enc := encoders.Get().(*encoder)
	defer encoders.Put(enc)
	enc.b, enc.err, enc.shown = enc.b[:0], nil, shown
	enc.open('{')
	enc.intIf("seq", e.Seq)
	enc.text("run", e.Run)
	enc.textIf("parent", e.Parent)
	enc.name("time")
	enc.time(e.Time)
	enc.intIf("skippedMs", e.SkippedMs)
	enc.text("type", string(e.Type()))
	enc.intIf("cycle", int64(e.Cycle))
	enc.textIf("step", e.Step)
	enc.name("data")
	enc.data(e.Data)
	enc.textIf("prev", e.Prev)
	enc.close('}')
	if enc.err != nil {
		return nil, fmt.Errorf("event: encode %s: %w", e.Type(), enc.err)
	}
	return append(b, enc.b...), nil
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func (e *encoder) data(d Data) {
	switch d := d.(type) {
	case frequent:
		e.open('{')
		d.encode(e)
		e.close('}')
	case Unknown:
		if e.b = append(e.b, d.Raw...); !json.Valid(d.Raw) {
			e.err = errors.New("its data is not valid JSON")
		}
	case abridged:
		e.value(d.stored(e.shown))
	default:
		e.value(d)
	}
}

// Decode decodes a stored event. An unknown kind decodes to [Unknown].
func Decode(stored []byte) (*Event, error) {
	if e, ok := (&decoder{b: stored}).stored(); ok {
		return e, nil
	}
	return decodeAny(stored)
}

// decodeAny decodes an event in any form of JSON.
func decodeAny(stored []byte) (*Event, error) {
	var env envelope
	if err := json.Unmarshal(stored, &env); err != nil {
		return nil, fmt.Errorf("event: decode: %w", err)
	}
	data, err := Data(Unknown{Type: env.Type, Raw: env.Data}), error(nil)
	if k, known := byName()[env.Type]; known {
		data, err = k.decode(env.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("event: decode %s (seq %d): %w", env.Type, env.Seq, err)
	}
	return &Event{
		Pos: env.Pos, Seq: env.Seq, Run: env.Run, Parent: env.Parent, Time: env.Time,
		SkippedMs: env.SkippedMs, Cycle: env.Cycle, Step: env.Step, Data: data, Prev: env.Prev,
	}, nil
}

// WithPos returns the stored form with pos as its first member, the form that every
// surface shows.
func WithPos(stored []byte, pos int64) []byte {
	out := make([]byte, 0, len(stored)+28)
	out = append(out, `{"pos":`...)
	out = strconv.AppendInt(out, pos, 10)
	out = append(out, ',')
	return append(out, stored[1:]...)
}

// MarshalJSON encodes the event in the form that surfaces show: pos first, and neither
// pos nor seq for a live event.
func (e *Event) MarshalJSON() ([]byte, error) {
	whole, err := encode(nil, e, true)
	if err != nil || e.Pos == 0 {
		return whole, err
	}
	return WithPos(whole, e.Pos), nil
}

// UnmarshalJSON decodes an event with or without pos.
func (e *Event) UnmarshalJSON(b []byte) error {
	d, err := Decode(b)
	if err != nil {
		return err
	}
	*e = *d
	return nil
}

// Hash returns the value of Prev in the run's next event: the first 16 bytes of the
// SHA-256 of the stored bytes, in hex.
func Hash(stored []byte) string {
	sum := sha256.Sum256(stored)
	return hex.EncodeToString(sum[:16])
}

// Unknown is an event of a kind that this version does not know.
type Unknown struct {
	Type Type
	Raw  json.RawMessage
}

// EventType returns the stored name.
func (u Unknown) EventType() Type { return u.Type }
