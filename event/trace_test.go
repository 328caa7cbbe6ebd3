package event_test

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/event"
)

func FuzzParseTraceparent(f *testing.F) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, ok := range map[string]bool{
		"00-" + id + "-" + span + "-01":                      true,
		"cc-" + id + "-" + span + "-01-later":                true,
		"00-" + id + "-" + span + "-01-later":                false,
		"ff-" + id + "-" + span + "-01":                      false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + id + "-0000000000000000-01":                  false,
		"00-" + strings.ToUpper(id) + "-" + span + "-01":     false,
		"00-" + id + "-" + span:                              false,
		"":                                                   false,
	} {
		got, is := event.ParseTraceparent(header)
		if is != ok || ok && got != (event.Trace{ID: id, Parent: span}) {
			f.Errorf("%q gives %v, %v", header, got, is)
		}
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if got, ok := event.ParseTraceparent(header); ok && (len(got.ID) != 32 || len(got.Parent) != 16) {
			t.Errorf("%q gives %v", header, got)
		}
	})
}
