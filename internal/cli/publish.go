package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pawlrun/pawl/internal/files/launch"
	"github.com/pawlrun/pawl/internal/host/published"
	"github.com/pawlrun/pawl/internal/server"
)

// mirror copies what is published in a shared journal, and sets the options of a server
// that follow from it. Commands see the copies of files, but not those of tokens.
func (a *app) mirror(ctx context.Context, f serveFlags, o *server.Options) (err error) {
	if schemeOf(a.journalPath) == "" {
		return nil
	}
	state, err := launch.StateDir()
	if err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find a place for the files that are published: %w", err)
	}
	sum := sha256.Sum256([]byte(a.journalPath))
	o.Published = &published.Mirror{
		Dir:        filepath.Join(cache, "pawl", "published"),
		TokensFile: filepath.Join(state, "published", hex.EncodeToString(sum[:8]), "tokens.yaml"),
	}
	opened, err := a.openStore(ctx, a.journalPath, Use{Create: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Store.Close()) }()
	o.Published.Store = opened.Store
	if _, err := o.Published.Look(ctx); err != nil {
		return err
	}
	if f.tokens == "" && !f.noAuth && o.Published.HasTokens() {
		o.Tokens = o.Published.TokensFile
	}
	return nil
}
