// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// What is copied: one large file, of what does not become smaller by any packing, and many small ones.
const (
	copyBytes = 1_000_000_000
	copyFiles = 10_000
	copySmall = 1_000 // bytes of each of those
	// copyRoom is what all of it takes at once: here, in the pod, and here again.
	copyRoom = 3*copyBytes + 500_000_000
	// copyPatience is how long one copy may take before the row ends without a figure.
	copyPatience = 5 * time.Minute
)

// copies: `wherry cp`, the whole command, of one large file and of many small ones, into a pod and out of it again.
// What comes back is compared with what went.
func (b *bench) copies(ctx context.Context) ([]result, error) {
	dir := filepath.Join(b.dir, "copy")
	defer os.RemoveAll(dir)
	large, small := filepath.Join(dir, "large"), filepath.Join(dir, "small")
	if err := roomFor(b.dir, copyRoom); err != nil {
		return nil, err
	}
	if err := makeFiles(large, small); err != nil {
		return nil, err
	}
	want, err := sumOf(dir)
	if err != nil {
		return nil, err
	}
	turn := b.inNewPod("copied", func(ctx context.Context) (map[string]time.Duration, error) {
		back := filepath.Join(b.dir, "copied-back")
		defer os.RemoveAll(back)
		if err := os.Mkdir(back, 0o755); err != nil {
			return nil, err
		}
		took := map[string]time.Duration{}
		for _, c := range []struct{ what, from, to string }{
			{"in", large, "copied:/large"}, {"many in", small, "copied:/small"},
			{"out", "copied:/large", back}, {"many out", "copied:/small", back},
		} {
			wall, cpu, err := b.copy(ctx, c.from, c.to)
			if err != nil {
				return nil, err
			}
			took[c.what], took[c.what+" cpu"] = wall, cpu
			fmt.Fprintf(os.Stderr, "  … %s: %s, of the processors %s\n", c.what, ms(wall), ms(cpu))
		}
		if got, err := sumOf(back); err != nil || !bytes.Equal(got, want) {
			return nil, errors.Join(errors.New("what was copied there and back is not what it was"), err)
		}
		return took, nil
	})
	s, err := inTurns(ctx, b.n, turn)
	if err != nil {
		return nil, err
	}
	speed := func(what string) result {
		d := s[0].median(what)
		return result{Figure: d, Note: fmt.Sprintf("%.0f MB/s", copyBytes/1e6/d.Seconds())}
	}
	in, out := speed("in"), speed("out")
	in.What, in.Limit = "`wherry cp`: 1 GB of random bytes into a pod, whole command", copyBytes*time.Second/300e6
	out.What, out.Limit = "… out of it", copyBytes*time.Second/300e6
	const cpu = "… processor time of client and server"
	return []result{in, {What: cpu, Figure: s[0].median("in cpu")}, out, {What: cpu, Figure: s[0].median("out cpu")},
		{What: fmt.Sprintf("… %d files of %d bytes into a pod", copyFiles, copySmall), Figure: s[0].median("many in")},
		{What: "… out of it", Figure: s[0].median("many out")},
	}, nil
}

// copy runs one `wherry cp`, and says what it and the server took of the processors. It ends by itself.
func (b *bench) copy(ctx context.Context, from, to string) (wall, cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, copyPatience, fmt.Errorf("it took longer than %s", copyPatience))
	defer cancel()
	before, err := cpuTime(b.server.pid())
	if err != nil {
		return 0, 0, err
	}
	cp := exec.CommandContext(ctx, b.wherry, "cp", "--kubeconfig="+kubeconfig(b.server.dataDir), from, to)
	begun := time.Now()
	out, err := cp.CombinedOutput()
	wall = time.Since(begun)
	if err != nil {
		return 0, 0, fmt.Errorf("wherry cp %s %s: %w: %s", from, to, errors.Join(err, context.Cause(ctx)), out)
	}
	after, err := cpuTime(b.server.pid())
	return wall, after - before + cp.ProcessState.UserTime() + cp.ProcessState.SystemTime(), err
}

// roomFor says so if a folder's disk has less room than is needed.
func roomFor(dir string, need int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return err
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fmt.Errorf("%s has room for %s, and %s are needed: name another folder by -dir", dir, mib(free),
			mib(need))
	}
	return nil
}

// makeFiles makes what is copied.
func makeFiles(large, small string) error {
	if err := os.MkdirAll(small, 0o755); err != nil {
		return err
	}
	source := rand.NewChaCha8([32]byte{'c', 'p'})
	f, err := os.Create(large)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(f, source, copyBytes); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	text := make([]byte, copySmall)
	for i := range copyFiles {
		_, _ = source.Read(text)
		folder := filepath.Join(small, fmt.Sprint(i%100))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// sumOf is the checksum of all names and files below a folder.
func sumOf(dir string) ([]byte, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintln(h, name)
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, f)
		return err
	})
	return h.Sum(nil), err
}
