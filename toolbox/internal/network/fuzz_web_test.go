// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/wherryproject/wherry/toolbox/internal/applet"
)

// site answers every request on a socket with the same bytes, and goes.
type site struct {
	reply   []byte
	strange []string // what clients said that was not one whole request
}

func (s *site) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		in := bufio.NewReader(conn)
		req, err := http.ReadRequest(in)
		switch {
		case err == nil && (in.Buffered() > 0 || req.Header.Get("Injected") != ""):
			s.strange = append(s.strange, req.Method+" "+req.RequestURI)
		case err == nil:
			_, _ = conn.Write(s.reply) // the client may have heard enough
		}
		conn.Close()
	}
}

// FuzzCurl: whatever address, header and format curl is given, and whatever a server answers, it asks in one whole request, writes what it
// says it has got, and tells in lines of its own, which the server cannot forge.
func FuzzCurl(f *testing.F) {
	const redirect = "HTTP/1.1 302 Found\r\nLocation: http://a/../x\x1b[2J\r\nContent-Length: 0\r\n\r\n"
	for _, reply := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx", "HTTP/1.0 200\r\n\r\n",
		"HTTP/1.1 999 \x1b]0;x\a\r\nX: \x1b[31m\r\n\r\n", redirect,
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 x\r\n\r\n", "", "\x15\x03\x01\x00\x02\x02\x28",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00", "HTTP/2.0 200 OK\r\n\r\n",
	} {
		f.Add("a/b", "A: b", "%{http_code}\\n%{json}", []byte(reply), uint8(0xff))
		f.Add("http://u:p@[::1]:99/%2e%2e/?q#f", "Host: c", "%%{url}", []byte(reply), uint8(0))
	}
	f.Add("https://a", "A: b\r\nInjected: x", "", []byte{}, uint8(2))
	f.Add("http://a/ HTTP/1.1\r\nInjected: x\r\n", "Content-Length: 5", "", []byte{}, uint8(8))
	f.Fuzz(func(t *testing.T, address, header, format string, reply []byte, flags uint8) {
		if strings.HasPrefix(address, "-") || strings.HasPrefix(format, "@") {
			return // a flag; a file
		}
		dir := t.TempDir()
		l, err := net.Listen("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		s, served := &site{reply: reply}, make(chan struct{})
		go func() { defer close(served); s.serve(l) }()
		file := filepath.Join(dir, "out")
		args := []string{"--unix-socket", filepath.Join(dir, "s"), "-o", file, "-H", header, "-w", "%{json}\n" + format}
		for i, flag := range []string{"-L", "-k", "-f", "-I", "--compressed", "-v", "-u=a:b"} {
			if flags&(1<<i) != 0 {
				args = append(args, flag)
			}
		}
		var out, told bytes.Buffer
		c := &applet.Call{Args: append(args, address), Out: bufio.NewWriter(&out), Err: &told}
		ended := curl(c)
		_ = c.Out.Flush()
		l.Close()
		<-served
		if len(s.strange) > 0 {
			t.Errorf("it asked for %q", s.strange)
		}
		for line := range strings.Lines(told.String()) {
			if !strings.ContainsAny(line[:1], "*<>") || strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl) {
				t.Errorf("the user reads %q", line)
			}
		}
		first, _, _ := strings.Cut(out.String(), "\n")
		if flags&8 != 0 || first == "" && ended != nil { // headers are before it; or it never asked
			return
		}
		var said struct {
			Size int64  `json:"size_download"`
			Code string `json:"http_code"`
		}
		if err := json.Unmarshal([]byte(first), &said); err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if got, err := os.ReadFile(file); ended == nil && (err != nil || int64(len(got)) != said.Size || len(said.Code) != 3) {
			t.Errorf("%d bytes with %q are said to be %d: %v", len(got), said.Code, said.Size, err)
		}
	})
}

// FuzzNameIn: what a download is written to is one name in one folder, whatever the address.
func FuzzNameIn(f *testing.F) {
	for _, address := range []string{"a/b.tar", "http://a/..", "http://a/%2e%2e%2fetc", "a/b/", "http://a/x%2f..", "https://a",
		"a?b=/c", "http://a/%00"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if name := nameIn(address); name != "" && (name != filepath.Base(name) || name == "." || name == ".." || name == "/") {
			t.Errorf("%q is written to %q", address, name)
		}
	})
}

// FuzzX509: whatever openssl x509 is given, it is shown in lines that are ours, or refused. The certificate it prints is the one it read.
func FuzzX509(f *testing.F) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	made := func(subject, names []byte) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), RawSubject: subject, NotAfter: time.Now().Add(time.Hour),
			SubjectKeyId:    []byte{1},
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: names}}}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			return nil
		}
		return der
	}
	subject, err := asn1.Marshal(pkix.Name{CommonName: "a\nVerification: OK\x1b[2J", Organization: []string{"é"}}.ToRDNSequence())
	if err != nil {
		f.Fatal(err)
	}
	names, err := asn1.Marshal([]asn1.RawValue{{Class: 2, Tag: 2, Bytes: []byte("a\nb")}, {Class: 2, Tag: 1,
		Bytes: []byte("a@b")}, {Class: 2, Tag: 7, Bytes: []byte{10, 0, 0, 1}}})
	if err != nil {
		f.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made(subject, names)})
	for _, args := range []string{"-subject", "-text", "-issuer -dates -serial -fingerprint -sha1", "-ext subjectAltName",
		"-checkend 99999999999999", "-noout", "-in x", "-x", "-checkend -1"} {
		f.Add(args, subject, names, []byte(nil))
		f.Add(args, []byte(nil), []byte(nil), append([]byte("some text\n"), block...))
	}
	f.Fuzz(func(t *testing.T, args string, subject, names, given []byte) {
		if len(given) == 0 {
			given = made(subject, names)
		}
		words := strings.Fields(args)
		for _, w := range words {
			if strings.HasPrefix(strings.TrimLeft(w, "-"), "in") {
				return // another file
			}
		}
		file := filepath.Join(t.TempDir(), "given")
		if err := os.WriteFile(file, given, 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		c := &applet.Call{Args: append(append([]string{"x509"}, words...), "-in", file), Out: bufio.NewWriter(&out)}
		if err := openssl(c); err != nil && strings.TrimSpace(err.Error()) == "" {
			t.Error("refused without a word")
		}
		_ = c.Out.Flush()
		text := out.String()
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("it prints %q", text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "Verification:") {
				t.Errorf("a certificate has written %q", line)
			}
		}
		at := strings.Index(text, "-----BEGIN")
		if at < 0 {
			return
		}
		cert, err := readCertificate(c, file)
		if err != nil {
			t.Fatal(err)
		}
		if again, rest := pem.Decode([]byte(text[at:])); again == nil || !bytes.Equal(again.Bytes, cert.Raw) || len(rest) > 0 {
			t.Errorf("another certificate is printed: %q", text[at:])
		}
	})
}
