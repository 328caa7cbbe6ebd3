package journal

import (
	"context"
	"errors"
)

// Remove deletes a run after its descendants, and returns the ids of the deleted runs, in
// that order. It deletes nothing if one of them has forks: the error is then a
// *[ForkedError]. It looks for children again after a run is deleted: the run may have
// continued until then, but cannot any more.
func Remove(ctx context.Context, s Store, run string) ([]string, error) {
	if err := unshared(ctx, s, run); err != nil {
		return nil, err
	}
	return remove(ctx, s, run)
}

// unshared rejects a run that has forks, or a descendant with forks.
func unshared(ctx context.Context, s Store, run string) error {
	forks, err := s.Runs(ctx, Filter{ForkOf: run})
	if err != nil {
		return err
	}
	if len(forks) > 0 {
		shared := &ForkedError{Run: run}
		for _, f := range forks {
			shared.Forks = append(shared.Forks, f.ID)
		}
		return shared
	}
	children, err := s.Runs(ctx, Filter{Parent: run})
	for _, child := range children {
		err = errors.Join(err, unshared(ctx, s, child.ID))
	}
	return err
}

func remove(ctx context.Context, s Store, run string) ([]string, error) {
	gone, err := removeChildren(ctx, s, run)
	if err == nil {
		err = s.Delete(ctx, run)
	}
	if err != nil {
		return gone, err
	}
	late, err := removeChildren(ctx, s, run)
	return append(append(gone, run), late...), err
}

func removeChildren(ctx context.Context, s Store, run string) (gone []string, err error) {
	children, err := s.Runs(ctx, Filter{Parent: run})
	for _, child := range children {
		if err == nil {
			var ids []string
			ids, err = remove(ctx, s, child.ID)
			gone = append(gone, ids...)
		}
	}
	return gone, err
}
