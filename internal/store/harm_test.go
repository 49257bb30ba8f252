// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"io/fs"
	"os"
)

// files is a file system without what is no file: sockets.
type files struct{ fs.FS }

func (f files) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(f.FS, name)
	kept := all[:0]
	for _, e := range all {
		if e.IsDir() || e.Type().IsRegular() {
			kept = append(kept, e)
		}
	}
	return kept, err
}

// overwrite puts n bytes of rubbish at a place of a file.
func overwrite(path string, at int64, n int) error {
	return put(path, at, bytes.Repeat([]byte{0xa5}, n))
}

// zero clears a file from a place to its end.
func zero(path string, from int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return put(path, from, make([]byte, info.Size()-from))
}

// garblePages overwrites the head of every page but the two that say where the rest is.
func garblePages(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	for at := int64(2 * 4096); at < info.Size(); at += 4096 {
		if err := overwrite(path, at, 16); err != nil {
			return err
		}
	}
	return nil
}

func put(path string, at int64, what []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(what, at)
	return err
}
