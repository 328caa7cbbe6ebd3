package journal_test

import (
	"testing"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/memory"
)

// other is a store that shares nothing.
type other struct{ journal.Store }

func TestAllWhoUseAStoreShareOneValueOfAType(t *testing.T) {
	type value struct{ n int }
	made := 0
	share := func(s journal.Store) *value {
		return journal.Share(s, func() *value { made++; return &value{made} })
	}
	a, b := memory.New(nil), memory.New(nil)
	first, again := share(a), share(a)
	if first != again || first == share(b) || made != 2 {
		t.Errorf("%d values were made for two stores", made)
	}
	if first, again = share(other{a}), share(other{a}); first == again {
		t.Error("a store that shares nothing gave the same value twice")
	}
	if n := journal.Share(a, func() int { return 7 }); n != 7 {
		t.Errorf("a value of another type is %d", n)
	}
}
