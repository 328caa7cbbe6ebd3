package event_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl/event"
	"github.com/pawlrun/pawl/llm"
)

// within visits each value of type T that a payload holds, wherever it stands.
func within[T any](v reflect.Value, visit func(T)) {
	if !v.CanInterface() {
		return
	}
	if x, ok := v.Interface().(T); ok {
		visit(x)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			within(v.Elem(), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			within(v.Index(i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			within(v.Field(i), visit)
		}
	}
}

// A kind of event that is forgotten here would keep its images within the
// journal's events, and unredacted.
func TestEveryImageAndFileOfEveryKindIsMapped(t *testing.T) {
	for _, zero := range event.All() {
		d := filled(zero)
		held, mapped := 0, 0
		within(reflect.ValueOf(d), func(llm.Media) { held++ })
		changed, err := event.MapMedia(d, func(m llm.Media) (llm.Media, error) {
			mapped++
			return llm.Media{MediaType: "x/mapped", Data: []byte("another content")}, nil
		})
		if err != nil || mapped != held {
			t.Errorf("%s: %d of %d are mapped, %v", d.EventType(), mapped, held, err)
		}
		within(reflect.ValueOf(changed), func(m llm.Media) {
			if m.MediaType != "x/mapped" {
				t.Errorf("%s: %s is left as it was", d.EventType(), m.MediaType)
			}
		})
		if diff := cmp.Diff(filled(zero), d); diff != "" {
			t.Errorf("%s: the original is changed:\n%s", d.EventType(), diff)
		}
		if held == 0 {
			continue
		}
		broken := errors.New("the disk is gone")
		for n := range held {
			left := n
			_, err := event.MapMedia(d, func(m llm.Media) (llm.Media, error) {
				if left--; left == -1 {
					return m, broken
				}
				return m, nil
			})
			if !errors.Is(err, broken) {
				t.Errorf("%s: the failure of number %d is %v", d.EventType(), n+1, err)
			}
		}
	}
}

// What a run refers to is kept while the run is, by these lists alone.
func TestAnEventRefersToAllThatLiesBesideIt(t *testing.T) {
	image := func(digest string) llm.Media { return llm.Media{MediaType: "image/png", Blob: digest} }
	inline := llm.Media{MediaType: "image/png", Data: []byte("here")}
	said := func(parts ...llm.Part) *llm.Message { return &llm.Message{Role: llm.RoleUser, Parts: parts} }
	result := event.ToolResult{Output: "too long", Blob: "whole", Untrusted: true, Private: true, Media: []llm.Media{inline, image("chart")}}
	ofResult := []event.BlobRef{{Digest: "whole", Untrusted: true, Private: true}, {Digest: "chart"}}
	for name, tt := range map[string]struct {
		data event.Data
		want []event.BlobRef
	}{
		"a run that continues another": {
			event.RunStarted{Input: said(image("task")), From: &event.ContinuedFrom{
				Blobs:   []event.BlobRef{{Digest: "page", Untrusted: true}, {Digest: "key", Private: true}},
				History: []*llm.Message{nil, said(llm.Text{Text: "look"}, image("old")), said(llm.ToolResult{Media: []llm.Media{image("older")}})},
			}},
			[]event.BlobRef{{Digest: "page", Untrusted: true}, {Digest: "key", Private: true}, {Digest: "task"}, {Digest: "old"}, {Digest: "older"}},
		},
		"a run that continues none":       {event.RunStarted{Input: said(image("task"), inline)}, []event.BlobRef{{Digest: "task"}}},
		"an answer":                       {event.ModelResponse{Parts: event.Answer{llm.Text{Text: "see"}, image("drawn")}}, []event.BlobRef{{Digest: "drawn"}}},
		"a message":                       {event.InputReceived{Media: []llm.Media{image("sent"), image("sent")}}, []event.BlobRef{{Digest: "sent"}, {Digest: "sent"}}},
		"a result":                        {result, ofResult},
		"the result of a failed attempt":  {event.ToolAttemptFailed{Result: result}, ofResult},
		"a result that lies in its event": {event.ToolResult{Output: "short", Untrusted: true}, nil},
		"anything else":                   {event.CycleStart{Cycle: 1}, nil},
	} {
		if diff := cmp.Diff(tt.want, event.Blobs(tt.data)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// One that is not changed is not copied; of one that is, the other messages and
// images are the same as before.
func TestOnlyWhatIsMappedIsReplaced(t *testing.T) {
	var history []*llm.Message
	for n := range 3 {
		history = append(history, &llm.Message{Role: llm.RoleUser, Parts: llm.Parts{
			llm.Text{Text: fmt.Sprint("picture ", n)}, llm.Media{Blob: fmt.Sprint(n)},
			llm.ToolResult{Media: []llm.Media{{Blob: "kept"}, {Blob: fmt.Sprint(n)}}},
		}})
	}
	started := event.RunStarted{From: &event.ContinuedFrom{Run: "r", History: history}}
	same, err := event.MapMedia(started, func(m llm.Media) (llm.Media, error) { return m, nil })
	if got := same.(event.RunStarted); err != nil || got.From != started.From {
		t.Errorf("what f leaves alone is copied, %v", err)
	}
	replaced, err := event.MapMedia(started, func(m llm.Media) (llm.Media, error) {
		if m.Blob == "1" {
			m.Blob = "new"
		}
		return m, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var digests []string
	within(reflect.ValueOf(replaced), func(m llm.Media) { digests = append(digests, m.Blob) })
	if want := []string{"0", "kept", "0", "new", "kept", "new", "2", "kept", "2"}; !slices.Equal(digests, want) {
		t.Errorf("the images are %q, want %q", digests, want)
	}
	got := replaced.(event.RunStarted).From
	if got.Run != "r" || got.History[0] != history[0] || got.History[2] != history[2] || got.History[1].Parts.Text() != "picture 1" {
		t.Errorf("%+v", got)
	}
	if before := history[1].Parts[1].(llm.Media).Blob; before != "1" {
		t.Errorf("the original refers to %q", before)
	}
}
