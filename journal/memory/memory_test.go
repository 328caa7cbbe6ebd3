package memory_test

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/journal"
	"github.com/pawlrun/pawl/journal/journaltest"
	"github.com/pawlrun/pawl/journal/memory"
)

func TestStoreKeepsTheContract(t *testing.T) {
	journaltest.Run(t, func(_ *testing.T, now func() time.Time) journal.Store { return memory.New(now) })
}
