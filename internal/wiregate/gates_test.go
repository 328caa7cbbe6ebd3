package wiregate

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/llm"
)

// holdToGates holds an adapter against all recorded traffic of its wire, gate by
// gate.
func holdToGates(t *testing.T, a Adapter) {
	for _, gate := range []struct {
		holds string
		check func(*testing.T, Adapter)
	}{
		{"recorded answers decode as independent readers agree", wireGate},
		{"the next request means what the recorded one means", requestGate},
		{"recorded tool loops run to their end", loopGate},
		{"damaged answers are broken and never half a call", faultGate},
		{"whatever was answered the next request keeps the rules of every wire", switchGate},
	} {
		t.Run(gate.holds, func(t *testing.T) { gate.check(t, a) })
	}
}

// imageAt is the picture at an address, which may hold it (data:…;base64,…).
func imageAt(url string) (llm.Media, error) {
	mediaType, text, inline := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !inline {
		return llm.Media{MediaType: "image/*", URL: url}, nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return llm.Media{}, fmt.Errorf("image: %w", err)
	}
	return llm.Media{MediaType: mediaType, Data: data}, nil
}
