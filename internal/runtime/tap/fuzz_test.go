// SPDX-License-Identifier: Apache-2.0

package tap

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzRing: whatever is in the file of a container's output, it is refused, or reading it ends, gives no more than the file holds, and nothing
// that is longer than asked for; and new output can be laid behind it.
func FuzzRing(f *testing.F) {
	r, err := newRing(filepath.Join(f.TempDir(), ringFile), 2*chunk)
	if err != nil {
		f.Fatal(err)
	}
	put(r, stdout, "first\n")
	put(r, stderr, "second\n")
	f.Add(append([]byte{}, r.mem[:headerSize]...), append([]byte{}, r.data[:64]...), uint16(100))
	r.h.reading.Store(r.h.head.Load() + 1)
	f.Add(append([]byte{}, r.mem[:headerSize]...), append([]byte{}, r.data[:64]...), uint16(1))
	r.h.head.Store(2 * chunk)
	f.Add(append([]byte{}, r.mem[:headerSize]...), []byte("\xff\xff\xff\xff\x01"), uint16(0))
	r.h.tail.Store(1<<63 - 8)
	r.h.head.Store(1<<63 + 8)
	f.Add(append([]byte{}, r.mem[:headerSize]...), []byte{}, uint16(9000))
	r.close()
	f.Fuzz(func(t *testing.T, head, data []byte, piece uint16) {
		path := filepath.Join(t.TempDir(), ringFile)
		text := make([]byte, headerSize+2*chunk)
		copy(text, head[:min(len(head), headerSize)])
		copy(text[headerSize:], data)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, open := range []func(string) (*ring, error){readRing, openRing} {
			r, err := open(path)
			if err != nil {
				continue
			}
			into, all := make([]byte, 1+int(piece)), 0
			for c := r.start(); r.more(c); {
				n, _, _ := r.next(c, into, piece%2 == 0)
				if all += n; n > len(into) || all > len(r.data) {
					t.Fatalf("%d bytes of %d were read into %d", all, len(r.data), len(into))
				}
			}
			r.close()
		}
		r, err := openRing(path)
		if err != nil {
			return
		}
		defer r.close()
		r.drop(r.needed())
		put(r, stderr, "more")
		if tail, head := r.h.tail.Load(), r.h.head.Load(); tail > head || head-tail > r.size {
			t.Errorf("frames from %d to %d in %d bytes", tail, head, r.size)
		}
	})
}

// FuzzSpec: whatever the file beside a container holds that says what its output is, it is read as the same again, or refused.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(`{"Stdin":"","Stdout":"/run/1/out","Stderr":"/run/1/err","Log":"/var/log/0.log","TTY":false,"StdinOnce":true,"Awaited":true}`))
	f.Add([]byte(`{"Stdout":5}`))
	f.Add([]byte(`null`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, text []byte) {
		taps := New(t.TempDir(), slog.New(slog.DiscardHandler))
		if err := os.Mkdir(filepath.Join(taps.dir, "c"), 0o700); err != nil {
			t.Fatal(err)
		}
		write := func(text []byte) {
			if err := os.WriteFile(filepath.Join(taps.dir, "c", specFile), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(text)
		s, err := taps.spec("c")
		if err != nil {
			return
		}
		for _, p := range s.paths() {
			if p == "" {
				t.Errorf("%s has a fifo without a name", text)
			}
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		write(again)
		if got, err := taps.spec("c"); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v is then %+v: %v", s, got, err)
		}
	})
}
