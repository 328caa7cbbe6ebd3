// Package wiregate holds the wire adapters to real provider traffic, which is kept
// beside a checkout in ../shared/fixtures: what an adapter makes of it must be what
// independent readers of the same bytes agree on.
//
// All of it but the place of the fixtures is tests, in which each adapter is described
// (Adapter) and put through the gates. The wire gate compares decoded answers, however
// their bytes are cut. The request gate feeds recorded answers and tool results back
// and compares the next request by meaning. The loop gate runs whole recorded
// tool loops through the real engine. The fault gate cuts and damages streams. Each
// prints one line with what passed, failed and was skipped. Where there are no
// fixtures, as in a plain clone, a gate skips and says so.
package wiregate

import (
	"os"
	"path/filepath"
)

// Fixtures is the fixtures' folder beside the checkout that the test runs in,
// and false where there is none.
func Fixtures() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
	}
	root := filepath.Join(dir, "..", "shared", "fixtures")
	_, err = os.Stat(filepath.Join(root, "wire", "index.json"))
	return root, err == nil
}
