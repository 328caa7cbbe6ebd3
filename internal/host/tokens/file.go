package tokens

import (
	"os"
	"sync"
	"time"

	"github.com/pawlrun/pawl/event"
)

// File gives the budgets of a file of tokens, and how runs are placed. It reads the file again when it has
// changed, and looks at most once a second. While the file cannot be read, the budgets
// that it had hold. It is safe for concurrent use.
type File struct {
	Path string

	mu      sync.Mutex
	looked  time.Time
	info    os.FileInfo
	budgets map[string]*Budget
	placing map[string]Placing
}

// Budget returns the budget of a principal's tenant, nil for none. Only the name of a
// token has one.
func (f *File) Budget(p event.Principal) *Budget {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	if p.Proof != event.ProofToken {
		return nil
	}
	return f.budgets[p.Name]
}

// Placing returns how the runs of a principal are placed. A principal without a token is
// a tenant of its own, without limits.
func (f *File) Placing(p event.Principal) Placing {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	if placing, is := f.placing[p.Name]; is && p.Proof == event.ProofToken {
		return placing
	}
	return Placing{Tenant: p.Name}
}

// HasBudgets reports whether any token has a budget.
func (f *File) HasBudgets() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	return len(f.budgets) > 0
}

func (f *File) look() {
	if time.Since(f.looked) < time.Second {
		return
	}
	f.looked = time.Now()
	info, err := os.Stat(f.Path)
	switch {
	case os.IsNotExist(err):
		f.info, f.budgets, f.placing = nil, nil, nil
		return
	case err != nil, f.info != nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size():
		return
	}
	all, err := Read(f.Path)
	if err != nil {
		return
	}
	f.info, f.budgets, f.placing = info, map[string]*Budget{}, map[string]Placing{}
	for _, e := range all {
		f.placing[e.Name] = e.placing()
		if b := e.Spending(); b != nil {
			f.budgets[e.Name] = b
		}
	}
}
