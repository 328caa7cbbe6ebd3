package spec_test

import (
	"testing"

	"github.com/pawlrun/pawl/internal/files/spec"
)

func TestTheCacheIsALifetimeOrOff(t *testing.T) {
	for text, want := range map[string]string{
		"cache: off":        "off",
		"cache: {ttl: 1h}":  "1h",
		"cache: {ttl: 5m}":  "5m",
		"cache: {ttl: off}": "off",
	} {
		a, err := spec.ParseAgent("a.yaml", []byte("identity: {name: x}\n"+text+"\n"), rules)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := a.Effective().Cache; got == nil || got.TTL != want {
			t.Errorf("%s: read as %+v", text, got)
		}
		written, err := a.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := spec.Restore("", written)
		if err != nil || again.Cache == nil || again.Cache.TTL != want {
			t.Errorf("%s: written as %s, read again as %+v (%v)", text, written, again, err)
		}
	}
}
