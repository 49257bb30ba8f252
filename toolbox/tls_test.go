// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secured is a server with a certificate of its own making, which is in the file ca.crt.
func secured(t *testing.T) (dir string, replace *strings.Replacer) {
	t.Helper()
	dir = t.TempDir()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello\n")) })
	mux.Handle("/moved", http.RedirectHandler("/", http.StatusFound))
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	addr := s.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return dir, strings.NewReplacer("ADDR", addr, "PORT", port)
}

// openssl shows a server's certificate and whether it is right, and what is in one.
func TestOpenSSL(t *testing.T) {
	dir, r := secured(t)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"openssl s_client -connect ADDR -CAfile ca.crt </dev/null", `CONNECTED to .*Certificate chain\n 0 s:O=Acme Co\n.*NotAfter: .*BEGIN CERTIFICATE.*Protocol: TLS 1.3\n.*Verification: OK.*`, 0},
		{"openssl s_client -brief -servername example.com -connect ADDR -CAfile ca.crt </dev/null", `CONNECTED.*names=.*DNS:example.com.*expires=.*\(in \d+ days\).*Verification: OK, also for the name example.com\n`, 0},
		{"openssl s_client -brief -servername other.test -connect ADDR -CAfile ca.crt </dev/null", `.*Verification: FAILED: .*not other.test\n`, 0},
		{"openssl s_client -brief -verify_return_error -connect ADDR </dev/null", `.*Verification: FAILED: .*openssl s_client: .*unknown authority\n`, 1},
		{"openssl s_client -brief -tls1_2 -connect ADDR </dev/null", `.*Protocol: TLS 1.2\n.*`, 0},
		{"openssl s_client -brief -alpn h2,http/1.1 -connect ADDR </dev/null", `.*ALPN: http/1.1\n.*`, 0},
		{"openssl s_client -connect 127.0.0.1:1", `openssl s_client: .*refused\n`, 1},
		{"openssl s_client -starttls smtp -connect ADDR", `openssl s_client: -starttls is not known here.*`, 2},
		{"openssl s_client -connect ADDR </dev/null | openssl x509 -noout -subject -ext subjectAltName", `subject=O=Acme Co\nX509v3 Subject Alternative Name:\n    DNS:example.com, .*`, 0},
		{"openssl x509 -in ca.crt -noout -dates -fingerprint", `notBefore=.* GMT\nnotAfter=.* GMT\nsha256 Fingerprint=([0-9A-F]{2}:){31}[0-9A-F]{2}\n`, 0},
		{"openssl x509 -in ca.crt -noout -checkend 10", "Certificate will not expire\n", 0},
		{"openssl x509 -in ca.crt -noout -checkend 99999999999", "Certificate will expire\n", 1},
		{"openssl x509 -in ca.crt -text | openssl x509 -noout -text", `Certificate:\n.*CA: true\n.*`, 0},
		{"echo no | openssl x509", "openssl x509: there is no certificate in the input.*", 1},
		{"openssl genrsa", `openssl: command "genrsa" is not known here: .*`, 2},
		{"(printf 'GET / HTTP/1.0\\r\\n\\r\\n'; cat) </dev/null | openssl s_client -brief -ign_eof -connect ADDR", `.*HTTP/1.0 200 OK.*hello\n`, 0},
	} {
		says(t, dir, r.Replace(c.line), c.want, c.code)
	}
}

// curl tells of connection, handshake and headers, and how long each took.
func TestCurlTells(t *testing.T) {
	dir, r := secured(t)
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"curl -sv --cacert ca.crt https://ADDR/", `\*   Trying ADDR\.\.\.\n\* Connected to ADDR\n.*\* SSL connection using TLS 1.3 / TLS_.*\*  subject: O=Acme Co\n.*expire date: .* GMT \(in \d+ days\)\n` +
			`.*verify ok.*> GET / HTTP/1.1\n> Host: ADDR\n.*< HTTP/1.1 200 OK\n.*hello\n`, 0},
		{"curl -sv https://ADDR/", `.*\* TLS handshake failed: .*unknown authority.*`, 60},
		{"curl -svkL -o /dev/null https://ADDR/moved", `.*not checked.*> GET /moved HTTP/1.1\n.*< HTTP/1.1 302 Found\n.*> GET / HTTP/1.1\n.*< HTTP/1.1 200 OK\n.*`, 0},
		{"curl -sv -o /dev/null --resolve example.com:PORT:127.0.0.1 --cacert ca.crt https://example.com:PORT/x", `.*> GET /x HTTP/1.1\n> Host: example.com:PORT\n.*`, 0},
		{`curl -sk -o /dev/null -w '%{http_code} %{remote_ip}:%{remote_port} %{num_connects} %{scheme} %{http_version} %{url_effective}\n' https://ADDR/`,
			`200 ADDR 1 https 1.1 https://ADDR/\n`, 0},
		{`curl -skL -o /dev/null -w '%{num_redirects} %{url_effective}' https://ADDR/moved`, `1 https://ADDR/`, 0},
		{`curl -sk -o /dev/null -w '%{redirect_url}' https://ADDR/moved`, `https://ADDR/`, 0},
		{`curl -sk -o /dev/null -w '%{time_connect} %{time_appconnect} %{time_starttransfer} %{time_total}' https://ADDR/ | awk '{ print ($1 > 0 && $1 <= $2 && $2 <= $3 && $3 <= $4) }'`, "1\n", 0},
		{`curl -sk -o /dev/null -w '%{json}' https://ADDR/ | jq -r '.http_code, .size_download, (.time_total | type)'`, "200\n6\nstring\n", 0},
		{`curl -s -w '%{http_code}\n' http://127.0.0.1:1/`, `000\ncurl: .*refused.*`, 7},
		// The file is called as its address, not as the server wants it.
		{"curl -skLO https://ADDR/moved; cat moved; rm moved; wget -qk https://ADDR/moved; cat moved", "hello\nhello\n", 0},
		{"curl -skO https://ADDR/", "curl: https://ADDR/ has no file name: .*", 23},
		{"curl -sk -m 1e300 --connect-timeout 1e300 https://ADDR/", "hello\n", 0},
		{`echo 'code %{http_code}' > f; curl -sk -o /dev/null -w @f https://ADDR/`, "code 200\n", 0},
	} {
		says(t, dir, r.Replace(c.line), r.Replace(c.want), c.code)
	}
}
