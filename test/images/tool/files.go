// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// watchFolder prints every file of a folder as name=text when it starts and then whenever the folder changes, as
// programs that reload their configuration do. It waits for the kernel's events and never polls.
func watchFolder(args []string) error {
	if len(args) != 1 {
		return errors.New("watch FOLDER")
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return err
	}
	// Volumes change by a rename of their ..data link, which is seen as IN_MOVED_TO.
	if _,
		err := syscall.InotifyAddWatch(fd, args[0],
		syscall.IN_MOVED_TO|syscall.IN_CREATE|syscall.IN_CLOSE_WRITE|syscall.IN_DELETE); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		if err := printFolder(args[0]); err != nil {
			return err
		}
		if _, err := syscall.Read(fd, buf); err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func printFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var all []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it went away: the next event tells
		}
		all = append(all, fmt.Sprintf("%s=%s", e.Name(), strings.TrimSpace(string(text))))
	}
	fmt.Println("files:", strings.Join(all, " "))
	return nil
}
