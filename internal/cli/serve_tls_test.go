package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/host/tokens"
	"github.com/pawlrun/pawl/internal/rules/access"
)

// certified writes a certificate of 127.0.0.1 and its key, and returns a client that
// trusts it.
func certified(t *testing.T, dir string) (certificate, key string, client *http.Client) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	return certificate, key, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
}

func TestTheServerSpeaksTLSAndKnowsTokensAndItsOrigin(t *testing.T) {
	p := newProject(t, map[string]string{"asks.yaml": asksAgent})
	certificate, key, client := certified(t, p.dir)
	file := filepath.Join(p.dir, "tokens.yaml")
	token, err := tokens.Create(file, tokens.Entry{Name: "ann", Role: access.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	s := p.serveWith([]string{"--tls-cert", certificate, "--tls-key", key, "--tokens", file})
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("it is at %s", s.url)
	}
	for _, c := range []struct {
		token, origin string
		want          int
	}{{token, "", 200}, {token, s.url, 200}, {token, "http" + strings.TrimPrefix(s.url, "https"), 403}, {"", "", 401}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/runs", nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%+v: status %d", c, answer.StatusCode)
		}
	}
	s.stop()
}
