// SPDX-License-Identifier: Apache-2.0

package copyfiles

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is the other side of a copy, as the toolbox's cp-unpack --keep is, but for the files.
type far struct {
	files  map[string][]byte
	parts  map[string][]byte // by the file's name
	came   int64             // bytes of content
	answer func(said string) string
}

func newFar() *far {
	return &far{files: map[string][]byte{}, parts: map[string][]byte{},
		answer: func(said string) string { return said }}
}

// deframed reads frames.
type deframed struct {
	from io.Reader
	left int
}

func (d *deframed) Read(p []byte) (int, error) {
	for d.left == 0 {
		var head [frameHead]byte
		if _, err := io.ReadFull(d.from, head[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		switch d.left = int(head[1])<<16 | int(head[2])<<8 | int(head[3]); head[0] {
		case frameData:
		case frameEnd:
			return 0, io.EOF
		default:
			return 0, errors.New("called off")
		}
	}
	n, err := d.from.Read(p[:min(len(p), d.left)])
	if d.left -= n; err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// take unpacks what comes until its end or a cut.
func (f *far) take(r io.Reader, say func(line string)) error {
	say(greeting + IntoFolder)
	d := &deframed{from: r}
	t := tar.NewReader(d)
	for entries := 1; ; entries++ {
		h, err := t.Next()
		if err == io.EOF { // of the archive: that of the frames is to come
			_, err := io.Copy(io.Discard, d)
			return err
		}
		if err != nil {
			return err
		}
		switch size, asked := h.PAXRecords[askRecord]; {
		case asked:
			say(f.answer(f.has(h.Name, size)))
		case h.Typeflag == tar.TypeReg:
			offset, _ := strconv.Atoi(h.PAXRecords[offsetRecord])
			f.parts[h.Name] = f.parts[h.Name][:min(offset, len(f.parts[h.Name]))]
			for buffer := make([]byte, 1000); err == nil; {
				var n int
				n, err = t.Read(buffer)
				f.parts[h.Name] = append(f.parts[h.Name], buffer[:n]...)
				f.came += int64(n)
			}
			if err != io.EOF {
				return err
			}
			f.files[h.Name] = f.parts[h.Name]
			delete(f.parts, h.Name)
		}
		say(fmt.Sprintf("at %d 0", entries))
	}
}

func (f *far) has(name, size string) string {
	if there, is := f.files[name]; is && strconv.Itoa(len(there)) == size {
		return fmt.Sprintf("whole %d %x", len(there), sha256.Sum256(there))
	}
	part := f.parts[name]
	return fmt.Sprintf("part %d %x", len(part), sha256.Sum256(part))
}

// over sends one leg over a line that is cut after so many bytes, and waits for both sides.
func over(t *testing.T, s *Sender, f *far, after int64) (here, there error) {
	t.Helper()
	leg := s.Leg()
	r, w := io.Pipe()
	over, sent := make(chan struct{}), make(chan error, 1)
	go func() {
		err := leg.Send(t.Context(), w, over, func(string) string { return "tree" })
		w.Close()
		sent <- err
	}()
	there = f.take(io.LimitReader(r, after), func(line string) { // a cut: nothing is heard any more
		for _, part := range []string{line[:3], line[3:] + "\n"} {
			if _, err := io.WriteString(leg, part); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
	close(over)
	r.CloseWithError(io.ErrClosedPipe)
	return <-sent, there
}

// tree makes some files and returns what they are.
func tree(t *testing.T) (dir string, want map[string][]byte) {
	t.Helper()
	dir, want = t.TempDir(), map[string][]byte{}
	r := rand.NewChaCha8([32]byte{7})
	for name, size := range map[string]int{"a": 10, "b/large": 700_000, "b/z": 513, "b-c": 0, "c/d/large": 300_000,
		"c/d/m": 1, "zz": 70_000} {
		text := make([]byte, size)
		_, _ = r.Read(text)
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		want["tree/"+name] = text
	}
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

func check(t *testing.T, f *far, want map[string][]byte) {
	t.Helper()
	if !maps.EqualFunc(f.files, want, bytes.Equal) || len(f.parts) > 0 {
		t.Errorf("%v came, want %v; parts %v", slices.Sorted(maps.Keys(f.files)), slices.Sorted(maps.Keys(want)),
			slices.Sorted(maps.Keys(f.parts)))
	}
}

// DA-09: wherever the line is cut, and wherever again, what comes in the end is what was to come, and little comes
// twice.
func TestSendGoesOn(t *testing.T) {
	dir, want := tree(t)
	var total int64
	for _, text := range want {
		total += int64(len(text))
	}
	for after := int64(0); after < total+20_000; after += 33_333 {
		s, f := NewSender(dir), newFar()
		var spared int64
		s.There = func(n int64) { spared += n }
		before, tries := "", 0
		for cut := after; ; cut = max(cut/2, 600_000) {
			here, there := over(t, s, f, cut)
			if here == nil && there == nil {
				break
			}
			if now := s.Reached(); cut > 600_000 && now == before {
				t.Errorf("cut after %d bytes: nothing more is known to be there", cut)
			}
			if before = s.Reached(); before == "" || tries > 9 {
				t.Fatalf("cut after %d bytes: it reached %q: %v, %v", after, before, here, there)
			}
			tries++
		}
		check(t, f, want)
		// of each cut, a small file and what a question is not worth
		if most := total + int64(tries)*2*worthAsking; f.came > most {
			t.Errorf("cut after %d bytes: %d bytes of %d came", after, f.came, total)
		}
		if tries > 0 && after > 500_000 && spared == 0 {
			t.Errorf("cut after %d bytes: nothing was spared", after)
		}
	}
}

// DA-09: a file that has changed, here or there, since the line was cut comes whole, as it is now.
func TestSendChanged(t *testing.T) {
	for _, where := range []string{"here", "there", "shorter"} {
		dir, want := tree(t)
		s, f := NewSender(dir), newFar()
		if _, there := over(t, s, f, 500_000); there == nil {
			t.Fatal("not cut")
		}
		if len(f.parts["tree/b/large"]) == 0 {
			t.Fatalf("there is no part: %v", f.parts)
		}
		switch file := filepath.Join(dir, "b/large"); where {
		case "there":
			f.parts["tree/b/large"][1000] ^= 1
		default:
			text := bytes.Repeat([]byte("new "), 150_000)
			if where == "shorter" {
				text = []byte("short")
			}
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
			want["tree/b/large"] = text
		}
		if here, there := over(t, s, f, 1<<30); here != nil || there != nil {
			t.Fatalf("%s: %v, %v", where, here, there)
		}
		check(t, f, want)
	}
}

// DA-09: a container that was started anew has lost what came before; what a volume has kept is found there.
func TestSendAgain(t *testing.T) {
	dir, want := tree(t)
	s, f := NewSender(dir), newFar()
	if _, there := over(t, s, f, 1_050_000); there == nil {
		t.Fatal("not cut")
	}
	large := f.files["tree/b/large"]
	if large == nil {
		t.Fatal("the first large file is not there")
	}
	f.files, f.parts, f.came = map[string][]byte{"tree/b/large": large}, map[string][]byte{}, 0
	s.Again()
	if here, there := over(t, s, f, 1<<30); here != nil || there != nil {
		t.Fatal(here, there)
	}
	check(t, f, want)
	if f.came > 400_000 {
		t.Errorf("%d bytes came again", f.came)
	}
}

// DA-09: who begins with a copy that another command gave up sends small files, and what is missing of the one that was
// cut.
func TestSendForAnother(t *testing.T) {
	dir, want := tree(t)
	s, f := NewSender(dir), newFar()
	if _, there := over(t, s, f, 900_000); there == nil {
		t.Fatal("not cut")
	}
	part := len(f.parts["tree/c/d/large"])
	if part == 0 || f.files["tree/b/large"] == nil {
		t.Fatalf("%v came, and parts %v", slices.Sorted(maps.Keys(f.files)), slices.Sorted(maps.Keys(f.parts)))
	}
	f.came = 0
	s = NewSender(dir)
	s.Again()
	if here, there := over(t, s, f, 1<<30); here != nil || there != nil {
		t.Fatal(here, there)
	}
	check(t, f, want)
	if missing := int64(10 + 513 + 300_000 - part + 1 + 70_000); f.came != missing {
		t.Errorf("%d bytes came, %d were missing", f.came, missing)
	}
}

// What the other side says it has is not believed: a sum is compared, and more than there can be ends the copy.
func TestSendLies(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for lie, says := range map[string]string{"whole 700000 " + zeros: "", "part 5 " + zeros: "",
		"part 700001 " + zeros: "has 700001 bytes of 700000", "whole 5 " + zeros: "has 5 bytes"} {
		dir, want := tree(t)
		s, f := NewSender(dir), newFar()
		if _, there := over(t, s, f, 500_000); there == nil {
			t.Fatal("not cut")
		}
		f.answer = func(string) string { return lie }
		here, _ := over(t, s, f, 1<<30)
		if says == "" && here == nil {
			check(t, f, want)
		} else if here == nil || says == "" || !strings.Contains(here.Error(), says) {
			t.Errorf("%s: %v", lie, here)
		}
	}
}

// A copy that is called off, or whose file cannot be read to its end, says so to the other side, which keeps nothing
// then.
func TestSendCallsOff(t *testing.T) {
	dir, _ := tree(t)
	for what, c := range map[string]struct {
		meanwhile func(cancel func())
		says      string
	}{
		"by the user": {func(cancel func()) { cancel() }, "canceled"},
		"a file that shrinks": {func(func()) {
			if err := os.Truncate(filepath.Join(dir, "b/large"), 300_000); err != nil {
				t.Error(err)
			}
		}, "shrank while it was being read (300000 of 700000 bytes)"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		leg := NewSender(dir).Leg()
		r, w := io.Pipe()
		sent := make(chan error, 1)
		go func() {
			err := leg.Send(ctx, w, make(chan struct{}), func(string) string { return "tree" })
			w.Close()
			sent <- err
		}()
		if _, err := io.WriteString(leg, greeting+IntoFolder+"\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, frameHead)); err != nil { // the first frame is on its way
			t.Fatal(err)
		}
		c.meanwhile(cancel)
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.HasSuffix(rest, []byte{frameCalled, 0, 0, 0}) {
			t.Errorf("%s: the last of %d bytes: %v", what, len(rest), err)
		}
		if err := <-sent; err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
}

// FuzzHeard: what the other side says is a report, or an error; nobody waits for it to be read.
func FuzzHeard(f *testing.F) {
	f.Add([]byte(greeting + "folder\nat 1 2\npart 3 aa\nwhole 4 bb\n"))
	f.Add([]byte(greeting + "name\n" + greeting + "name\n"))
	f.Add([]byte("at -1 0\nat 99999999999999999999 0\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		s := NewSender("/nowhere")
		leg := s.Leg()
		s.sent("file")
		done := make(chan error, 1)
		go func() { _, err := leg.Write(said); done <- err }()
		select {
		case err := <-done:
			if err == nil && s.there("file") && !bytes.Contains(said, []byte("at 1 ")) &&
				!bytes.Contains(said, []byte("at +1 ")) &&
				!bytes.Contains(said, []byte("at 0")) {
				t.Error("a file is there of which nobody has said so")
			}
		case <-time.After(time.Minute):
			t.Error("it waits")
		}
	})
}
