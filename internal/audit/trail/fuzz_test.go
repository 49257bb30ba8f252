// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzRead reads an audit log, plain or compressed, that is damaged or has what clients chose in it: nothing of it reaches a terminal as a
// control character (RS-13).
func FuzzRead(f *testing.F) {
	const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"a","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/pods/w/exec?command=ls&command=\u001b[2J",` +
		`"verb":"create","user":{"username":"jane"},"sourceIPs":["::1"],"objectRef":{"resource":"pods","namespace":"a","name":"w","subresource":"exec"},"responseStatus":{"code":403,"message":"no\\n"},"annotations":{"audit.wherry.dev/count":"7"}}`
	f.Add([]byte(event+"\n"), "pods", "w")
	f.Add([]byte(strings.ReplaceAll(event, "exec", "ephemeralcontainers")+"\n{}\n\x00\n{"+event[:50]), "", "")
	f.Add([]byte(strings.ReplaceAll(event, `"objectRef"`, `"x"`)), "", "")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte(event)); err != nil || w.Close() != nil {
		f.Fatal(err)
	}
	f.Add(zipped.Bytes(), "pods", "")
	f.Fuzz(func(t *testing.T, data []byte, resource, name string) {
		dir := t.TempDir()
		for _, file := range []string{"audit.log", "audit.log.gz"} {
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = Read([]string{path}, Filter{Resource: resource, Name: name}, func(e Event) error { // any error is fine
				entry := Say(&e.Event)
				for _, text := range []string{entry.ID, entry.User, entry.Verb, entry.Namespace, entry.What, entry.Result, entry.Message, entry.From, entry.Agent} {
					if strings.ContainsFunc(text, unicode.IsControl) {
						t.Errorf("%q", text)
					}
				}
				return nil
			})
		}
	})
}
