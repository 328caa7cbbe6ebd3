package sandbox_test

import (
	"os"
	"testing"

	"github.com/pawlrun/pawl/sandbox"
)

var shim sandbox.Shim

func TestMain(m *testing.M) {
	shim = sandbox.Main()
	os.Exit(m.Run())
}
