package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/pawlrun/pawl/tool"
)

// level is an enumeration that is written by its names.
type level uint8

func (l *level) UnmarshalText(text []byte) error {
	switch string(text) {
	case "low":
		*l = 1
	case "high":
		*l = 2
	default:
		return fmt.Errorf("there is no level %q", text)
	}
	return nil
}

// money reads itself, from what its fields do not tell.
type money struct{ cents int64 }

func (m *money) UnmarshalJSON(raw []byte) error {
	var whole, cents int64
	_, err := fmt.Sscanf(string(raw), `"%d.%d"`, &whole, &cents)
	m.cents = whole*100 + cents
	return err
}

// page reads itself to fill in what is missing.
type page struct {
	Size int `json:"size,omitempty"`
}

func (p *page) UnmarshalJSON(raw []byte) error {
	type plain page
	*p = page{Size: 50}
	return json.Unmarshal(raw, (*plain)(p))
}

type of[T any] struct {
	V T `json:"v"`
}

type base struct {
	ID int `json:"id"`
}

type built struct {
	base
	*extra
}

type extra struct {
	Tag string `json:"tag,omitempty"`
}

// colour is a text that is checked.
type colour string

func (c *colour) UnmarshalJSON(raw []byte) error {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return err
	}
	if name != "red" && name != "green" {
		return fmt.Errorf("there is no colour %q", name)
	}
	*c = colour(name)
	return nil
}

// rank is a number that is written by its name.
type rank int

func (r *rank) UnmarshalJSON(raw []byte) error {
	if string(raw) != `"first"` {
		return fmt.Errorf("there is no rank %s", raw)
	}
	*r = 1
	return nil
}

// cents has a text as well, for flags; JSON reads what UnmarshalJSON does.
type cents int64

func (c *cents) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "%d cents", (*int64)(c))
	return err
}

func (c *cents) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, (*int64)(c)) }

// yes is a truth that is checked.
type yes bool

func (y *yes) UnmarshalJSON(raw []byte) error {
	*y = true
	return json.Unmarshal(raw, (*bool)(y))
}

// taken makes a tool of a type, asks it by a call that its schema must let
// through, or must not, and returns what arrives.
func taken[A any](t *testing.T, args string) (A, error) {
	t.Helper()
	var got A
	made := tool.New("t", "", func(_ context.Context, a A) (string, error) { got = a; return "", nil })
	schema, err := tool.CompileSchema(made.Schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(json.RawMessage(args)); err != nil {
		return got, err
	}
	_, err = made.Run(t.Context(), tool.Call{Args: json.RawMessage(args)})
	return got, err
}

func takes[A any](t *testing.T, args string, want string) {
	t.Helper()
	got, err := taken[A](t, args)
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%T of %s is %v, %v; want %s", got, args, got, err, want)
	}
}

func refuses[A any](t *testing.T, args string) {
	t.Helper()
	got, err := taken[A](t, args)
	if _, late := errors.AsType[*tool.Error](err); err == nil || late {
		t.Errorf("%T of %s: the schema lets through what cannot be read: %v", got, args, err)
	}
}

// A model is asked for what encoding/json reads, which is not always what a type
// looks like.
func TestASchemaAsksForWhatTheFunctionCanRead(t *testing.T) {
	takes[of[level]](t, `{"v": "high"}`, "{2}")
	takes[of[[]level]](t, `{"v": ["low", "high"]}`, "{[1 2]}")
	takes[of[map[string]level]](t, `{"v": {"a": "low"}}`, "{map[a:1]}")
	takes[of[money]](t, `{"v": "1.50"}`, "{{150}}")
	takes[of[page]](t, `{"v": {}}`, "{{50}}")
	takes[of[colour]](t, `{"v": "red"}`, "{red}")
	takes[of[rank]](t, `{"v": "first"}`, "{1}")
	takes[of[cents]](t, `{"v": 5}`, "{5}")
	takes[of[yes]](t, `{"v": true}`, "{true}")
	takes[of[json.RawMessage]](t, `{"v": {"a": [1]}}`, fmt.Sprint(of[json.RawMessage]{json.RawMessage(`{"a": [1]}`)}))
	takes[of[[]byte]](t, `{"v": "aGk="}`, "{[104 105]}")
	takes[of[json.Number]](t, `{"v": 1.5}`, "{1.5}")
	takes[of[big.Int]](t, `{"v": 12345678901234567890}`, fmt.Sprint(of[big.Int]{*big.NewInt(0).SetUint64(12345678901234567890)}))
	takes[of[netip.Addr]](t, `{"v": "::1"}`, "{::1}")
	takes[of[time.Time]](t, `{"v": "2020-01-02T03:04:05Z"}`, "{2020-01-02 03:04:05 +0000 UTC}")
	takes[of[time.Duration]](t, `{"v": 1000}`, "{1µs}")
	takes[of[of[any]]](t, `{"v": {"v": [1]}}`, "{{[1]}}")
	takes[built](t, `{"id": 7}`, "{{7} <nil>}")
	if got, err := taken[of[*money]](t, `{"v": "1.50"}`); err != nil || got.V == nil || got.V.cents != 150 {
		t.Errorf("behind a pointer: %v, %v", got, err)
	}
	refuses[of[level]](t, `{"v": 1}`)
	refuses[of[[]byte]](t, `{"v": [104, 105]}`)
	refuses[of[json.Number]](t, `{"v": "1.5"}`)
	refuses[of[page]](t, `{"v": {"width": 3}}`)
	refuses[of[colour]](t, `{"v": 1}`)
	refuses[of[rank]](t, `{"v": {}}`)
	refuses[of[yes]](t, `{"v": "yes"}`)
}

// A service refuses an array that does not say what it is of.
func TestWhateverMayBeAnArraySaysWhatItIsOf(t *testing.T) {
	for name, schema := range map[string]func() (json.RawMessage, error){
		"raw JSON":                tool.SchemaOf[of[json.RawMessage]],
		"raw JSON of a pointer":   tool.SchemaOf[of[*json.RawMessage]],
		"a struct without a look": tool.SchemaOf[of[money]],
	} {
		made, err := schema()
		if err != nil {
			t.Fatal(err)
		}
		var s struct{ Properties struct{ V map[string]any } }
		if err := json.Unmarshal(made, &s); err != nil {
			t.Fatal(err)
		}
		if s.Properties.V["type"] == nil || s.Properties.V["items"] == nil {
			t.Errorf("%s: %s", name, made)
		}
	}
}

type logged struct {
	Text string       `json:"text"`
	Log  fmt.Stringer `json:"log,omitempty"`
	Next fmt.Stringer `json:"next,omitzero"`
}

type writer io.Writer

type shared struct {
	Base fmt.Stringer `json:"base,omitempty"`
}

type deep struct {
	shared
	Rows []*logged `json:"rows"`
}

// What the function fills in by itself does not stop a tool, and a call that
// would fill it is refused.
func TestWhatNoCallCanFillMayBeLeftOut(t *testing.T) {
	takes[logged](t, `{"text": "a"}`, "{a <nil> <nil>}")
	refuses[logged](t, `{"text": "a", "log": "b"}`)
	takes[deep](t, `{"rows": []}`, "{{<nil>} []}")
	refuses[deep](t, `{"rows": [], "base": 1}`)
	takes[struct {
		Rows []*of[fmt.Stringer] `json:"rows,omitempty"`
	}](t, `{}`, "{[]}")
	refuses[deep](t, `{"rows": [{"text": "a", "log": {}}]}`)
}

// encoding/json passes over the option string but at single values, over what is
// not exported, and over what is named "-".
func TestFieldsThatEncodingJSONPassesOverStopNoTool(t *testing.T) {
	takes[struct {
		//lint:ignore SA5008 encoding/json takes it, so programs have it
		X []int `json:"x,string"`
	}](t, `{"x": [1]}`, "{[1]}")
	takes[struct {
		X int `json:"x"`
		writer
	}](t, `{"x": 1}`, "{1 <nil>}")
	takes[struct {
		X     int `json:"x"`
		Y     int `json:"-"`
		extra `json:"-"`
	}](t, `{"x": 1}`, "{1 0 {}}")
}

// That nothing can be called is known when a tool is made, not when a model
// has tried.
func TestATypeThatNoCallCouldFillMakesNoTool(t *testing.T) {
	for name, schema := range map[string]func() (json.RawMessage, error){
		"an interface with methods": tool.SchemaOf[of[fmt.Stringer]],
		"a number within a string": tool.SchemaOf[struct {
			N int `json:"n,string"`
		}],
		"a truth within a string": tool.SchemaOf[struct {
			N *bool `json:"n,string"`
		}],
		"a text within a string": tool.SchemaOf[struct {
			N string `json:"n,omitempty,string"`
		}],
		"an interface that must be there beside one that need not": tool.SchemaOf[struct {
			A fmt.Stringer `json:"a,omitempty"`
			B fmt.Stringer `json:"b"`
		}],
		"an embedded field's name": tool.SchemaOf[struct {
			extra `json:"extra"`
		}],
		"an embedded map":           tool.SchemaOf[struct{ Headers }],
		"one of these further down": tool.SchemaOf[of[[]map[string]*of[fmt.Stringer]]],
	} {
		if made, err := schema(); err == nil {
			t.Errorf("%s: %s", name, made)
		}
	}
}

// Headers is embedded by its name.
type Headers map[string]string
