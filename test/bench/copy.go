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
	"time"
)

// What is copied: one large file, of what does not become smaller by any packing, and many small ones.
const (
	copyBytes = 1_000_000_000
	copyFiles = 10_000
	copySmall = 1_000 // bytes of each of those
)

// copies: `wherry cp`, the whole command, of one large file and of many small ones, into a pod and out of it again.
// What comes back is compared with what went.
func (b *bench) copies(ctx context.Context) ([]result, error) {
	dir := filepath.Join(b.dir, "copy")
	defer os.RemoveAll(dir)
	large, small := filepath.Join(dir, "large"), filepath.Join(dir, "small")
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
			begun := time.Now()
			if out, err := exec.CommandContext(ctx, b.wherry, "cp", "--kubeconfig="+kubeconfig(b.server.dataDir),
				c.from, c.to).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("wherry cp %s %s: %w: %s", c.from, c.to, err, out)
			}
			took[c.what] = time.Since(begun)
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
	return []result{in, out,
		{What: fmt.Sprintf("… %d files of %d bytes into a pod", copyFiles, copySmall), Figure: s[0].median("many in")},
		{What: "… out of it", Figure: s[0].median("many out")},
	}, nil
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
