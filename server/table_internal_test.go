package server

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// written is a connection's end as the kernel writes it.
func written(a netip.AddrPort) string {
	raw := a.Addr().AsSlice()
	for i := 0; i < len(raw); i += 4 {
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	return fmt.Sprintf("%s:%04X", strings.ToUpper(hex.EncodeToString(raw)), a.Port())
}

// FuzzSocketTable: no line of the kernel's table, or of what is given out as
// it, breaks the reader; and what is read is what was written.
func FuzzSocketTable(f *testing.F) {
	for _, seed := range []string{
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
		"   0: 0100007F:9C40 0100007F:0BB9 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 20 4 30 10 -1",
		"   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:0BB9 01 00000000:00000000 00:00000000 00000000 1000 0 4711 1",
		"0: 01:1 01:1 01 0 0 0 -1 0 x", "0: 0100007F 0100007F:0BB9 01 0 0 0 1 0 x", ":::::::::: : : : : : : : : :",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, ok := parseSocket(line)
		if !ok {
			return
		}
		if !s.local.Addr().IsValid() || !s.remote.Addr().IsValid() {
			t.Fatalf("%q has %v and %v as its ends", line, s.local, s.remote)
		}
		again := fmt.Sprintf("0: %s %s 01 0 0 0 %d 0 %s", written(s.local), written(s.remote), s.uid, s.inode)
		if back, ok := parseSocket(again); !ok || back != s {
			t.Errorf("%q is %+v, and written again %+v", line, s, back)
		}
	})
}
