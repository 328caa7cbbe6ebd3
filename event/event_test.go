package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/events.md")

var noon = time.Date(2026, 11, 21, 12, 0, 0, 123456000, time.UTC)

// filled is a payload of the kind with something in every field.
func filled(zero event.Data) event.Data {
	v := reflect.New(reflect.TypeOf(zero)).Elem()
	fill(v, 1)
	return v.Interface().(event.Data)
}

func fill(v reflect.Value, n int) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = noon
		return
	case *json.RawMessage:
		*x = json.RawMessage(fmt.Sprintf(`{"n":%d,"s":"<&>"}`, n))
		return
	case *llm.Parts:
		*x = llm.Parts{
			llm.Text{Text: "hi <&>"}, llm.Reasoning{Text: "hm", Signature: "s"}, llm.Media{MediaType: "image/png", Data: []byte{1}},
			llm.ToolResult{CallID: "c", Name: "t", Output: "o"}, llm.Item{Type: "search", Raw: json.RawMessage(`{"x":1}`)},
		}
		return
	case *llm.Media:
		// Its content is either here or elsewhere.
		*x = llm.Media{MediaType: "image/png", Name: "<&>", URL: "https://x.test/?a&b", Data: []byte{1}}
		if n%2 == 0 {
			x.Data, x.Blob = nil, "sha256-1"
		}
		return
	case *event.Answer:
		*x = event.Answer{llm.Text{Text: "hi <&>"}, llm.ToolCall{CallID: "c", ProviderID: "p", Name: "t", Signature: "s"}}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text <&> ", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n+i)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf("value"))
	case reflect.Struct:
		for i := range v.NumField() {
			if written(v.Type().Field(i)) {
				fill(v.Field(i), n+i)
			}
		}
	default:
		panic("fill: " + v.Type().String())
	}
}

// written reports whether a field is one of those that a payload is written by.
func written(f reflect.StructField) bool { return f.Tag.Get("json") != "-" }

func TestEveryPayloadSurvivesARoundTrip(t *testing.T) {
	seen := map[event.Type]bool{}
	for _, zero := range event.All() {
		if seen[zero.EventType()] {
			t.Errorf("%s is listed twice", zero.EventType())
		}
		seen[zero.EventType()] = true
		for _, data := range []event.Data{zero, filled(zero)} {
			e := &event.Event{Seq: 7, Run: "r", Parent: "p", Time: noon, SkippedMs: 41, Cycle: 3, Step: "a.b", Data: data, Prev: "abc"}
			body, err := event.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := event.Decode(body)
			if err != nil {
				t.Fatalf("%s: %v\n%s", data.EventType(), err, body)
			}
			if _, unknown := got.Data.(event.Unknown); unknown {
				t.Errorf("%s is written and not read", data.EventType())
			}
			again, err := event.Encode(got)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(body, again) {
				t.Errorf("%s changes on the way:\n%s\n%s", data.EventType(), body, again)
			}
			if reflect.DeepEqual(data, zero) {
				continue // absent and empty are the same on the wire
			}
			if diff := cmp.Diff(e, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-written +read):\n%s", data.EventType(), diff)
			}
		}
	}
}

// What tells of a step stands under that step in the envelope, but what a run says
// of itself when it begins and ends.
func TestAPayloadAboutAStepSaysSo(t *testing.T) {
	for _, zero := range event.All() {
		switch zero.(type) {
		case event.RunStarted, event.RunTerminatedBy:
			continue
		}
		f, has := reflect.TypeOf(zero).FieldByName("Step")
		if !has || f.Type.Kind() != reflect.String {
			continue
		}
		data := filled(zero)
		if s, ok := data.(event.Stepped); !ok || s.OfStep() != reflect.ValueOf(data).FieldByName("Step").String() {
			t.Errorf("%s has a step and does not tell it", zero.EventType())
		}
	}
}

// The stored form of every other event is what the tags of its payload say, and
// the exported surface and docs/events.md pin those.
func TestTheStoredFormOfAnEventThatWritesItselfIsFixed(t *testing.T) {
	var all bytes.Buffer
	for _, zero := range event.All() {
		if !writesItself(reflect.TypeOf(zero)) {
			continue
		}
		body, err := event.Encode(&event.Event{Seq: 7, Run: "r", Time: noon, Cycle: 3, Data: filled(zero), Prev: "abc"})
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(body, '\n'))
	}
	golden(t, filepath.Join("testdata", "stored.golden"), all.Bytes())
}

// writesItself reports whether a method says how a type, or one that it is made
// of, is written.
func writesItself(t reflect.Type) bool {
	switch {
	case t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[json.RawMessage]():
		return false
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return true
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
		return writesItself(t.Elem())
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if writesItself(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the types say; -update rewrites it (-want +got):\n%s", path, diff)
	}
}

func TestAnEventOfAnUnknownKindSurvives(t *testing.T) {
	const stored = `{"seq":9,"run":"r","time":"2026-11-21T12:00:00.000000Z","type":"moon.phase","data":{"phase":"full","b":[1, 2]},"prev":"x"}`
	e, err := event.Decode([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := e.Data.(event.Unknown); !ok || u.Type != "moon.phase" || e.Type() != "moon.phase" {
		t.Fatalf("data %#v", e.Data)
	}
	back, err := event.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if string(back) != stored {
		t.Errorf("got  %s\nwant %s", back, stored)
	}
}

func TestAFieldOfALaterVersionIsPassedOver(t *testing.T) {
	e, err := event.Decode([]byte(`{"seq":1,"run":"r","time":"2026-11-21T12:00:00Z","type":"nudge","mood":"fine","data":{"kind":"stuck","text":"go","tone":"kind"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if e.Data != (event.Nudge{Kind: event.NudgeStuck, Text: "go"}) {
		t.Errorf("data %#v", e.Data)
	}
}

func TestMarkupIsStoredAsItIs(t *testing.T) {
	body, err := event.Encode(&event.Event{Seq: 1, Run: "r", Time: noon, Data: event.ToolResult{CallID: "c", Output: "<a href='x'>&</a>"}})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(body, []byte("<a href='x'>&</a>")) {
		t.Errorf("escaped: %s", body)
	}
}

func TestArgumentsAreStoredOnce(t *testing.T) {
	answer := event.Answer{
		llm.ToolCall{CallID: "c1", Name: "t", Args: json.RawMessage(`{"secretly":"long"}`)},
		llm.ToolCall{CallID: "c2", Name: "t", ArgsText: `{"secretly":`},
	}
	body, err := json.Marshal(event.ModelResponse{Parts: answer})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(body, []byte("secretly")) {
		t.Errorf("the answer keeps arguments: %s", body)
	}
	if c := answer[0].(llm.ToolCall); string(c.Args) != `{"secretly":"long"}` {
		t.Error("encoding changed the answer itself")
	}
}

func TestEqualInstantsGiveEqualBytes(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	a, err := event.Encode(&event.Event{Seq: 1, Run: "r", Time: noon, Data: event.CycleStart{}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := event.Encode(&event.Event{Seq: 1, Run: "r", Time: noon.In(berlin), Data: event.CycleStart{}})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestPosIsShownAndNotStored(t *testing.T) {
	e := event.Event{Pos: 12, Seq: 1, Run: "r", Time: noon, Data: event.CycleStart{Cycle: 1, MaxCycles: 2}}
	stored, err := event.Encode(&e)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(stored, []byte("pos")) || string(shown) != string(event.WithPos(stored, 12)) {
		t.Errorf("stored %s\nshown %s", stored, shown)
	}
	var back event.Event
	if err := json.Unmarshal(shown, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, back); diff != "" {
		t.Error(diff)
	}
}

// An answer stands once in the event that ends its run, and twice where surfaces
// show it.
func TestAStoredOutcomeHoldsAnAnswerOnce(t *testing.T) {
	for _, data := range []event.Data{
		event.RunCompleted{Outcome: event.Outcome{Status: event.StatusCompleted, FinalOutput: "the <answer>", LastOutput: "the <answer>"}},
		event.ChildFinished{Child: "c", Outcome: event.Outcome{Status: event.StatusCompleted, FinalOutput: "the <answer>", LastOutput: "the <answer>"}},
	} {
		e := event.Event{Pos: 12, Seq: 1, Run: "r", Time: noon, Data: data}
		stored, err := event.Encode(&e)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := json.Marshal(&e)
		if err != nil {
			t.Fatal(err)
		}
		if n, m := bytes.Count(stored, []byte("answer")), bytes.Count(shown, []byte("answer")); n != 1 || m != 2 {
			t.Errorf("%d in %s\n%d in %s", n, stored, m, shown)
		}
		back, err := event.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(data, back.Data); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAChainBreaksWhereABytesChanges(t *testing.T) {
	head := ""
	var chain [][]byte
	for i := range 5 {
		body, err := event.Encode(&event.Event{Seq: int64(i + 1), Run: "r", Time: noon, Data: event.Checkpoint{Label: fmt.Sprint(i)}, Prev: head})
		if err != nil {
			t.Fatal(err)
		}
		chain, head = append(chain, body), event.Hash(body)
	}
	breaks := func() int {
		head := ""
		for i, body := range chain {
			e, err := event.Decode(body)
			if err != nil || e.Prev != head {
				return i
			}
			head = event.Hash(body)
		}
		return -1
	}
	if at := breaks(); at != -1 {
		t.Fatalf("a whole chain breaks at %d", at)
	}
	chain[2] = bytes.Replace(chain[2], []byte(`"2"`), []byte(`"7"`), 1)
	if at := breaks(); at != 3 {
		t.Errorf("breaks at %d", at)
	}
}

func FuzzDecode(f *testing.F) {
	for _, zero := range event.All() {
		body, err := event.Encode(&event.Event{Seq: 7, Run: "r", Time: noon, Data: filled(zero), Prev: "abc"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"seq":1,"type":"moon.phase","data":null}`))
	f.Add([]byte(`{"seq":1,"run":"\u0000\"<","time":"0001-01-01T00:00:00Z","type":"nu\"dge","data":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := event.Decode(in)
		if err != nil {
			return
		}
		body, err := event.Encode(e)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q encodes to what is no JSON: %s", in, body)
		}
		again, err := event.Decode(body)
		if err != nil {
			t.Fatalf("what was decoded and encoded does not decode: %v\n%s", err, body)
		}
		third, err := event.Encode(again)
		if err != nil || !bytes.Equal(body, third) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, body, third)
		}
	})
}

func TestEveryLiveEventHasAName(t *testing.T) {
	for _, d := range []event.Data{event.Text{}, event.Reasoning{}, event.ToolCallDelta{}, event.TextReset{}} {
		if strings.TrimSpace(string(d.EventType())) == "" {
			t.Errorf("%T has no name", d)
		}
		for _, durable := range event.All() {
			if durable.EventType() == d.EventType() {
				t.Errorf("%s is live and durable", d.EventType())
			}
		}
	}
}
