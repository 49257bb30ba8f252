// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"os"
	"strings"

	"github.com/wherryproject/wherry/internal/kernellog"
	"github.com/wherryproject/wherry/internal/why"
)

// Kills are the OOM kills in a container, by its ID, that this machine's kernel has logged.
func Kills(container string) []why.Kill { return killsOf(kernelKills(), container) }

// kernelKills are the OOM kills that this machine's kernel has logged; a user who may not read its messages gets
// none: they are an extra.
func kernelKills() []kernellog.Kill {
	messages, err := kernellog.Read()
	if err != nil {
		return nil
	}
	return kernellog.OutOfMemory(messages, int64(os.Getpagesize()))
}

// killsOf are those of the kernel's that were in a container, by its ID.
func killsOf(kills []kernellog.Kill, container string) (of []why.Kill) {
	for _, k := range kills {
		if container == "" || !strings.Contains(k.Group, container) {
			continue
		}
		one := why.Kill{Container: container, Killed: memoryOf(k.Killed)}
		for _, p := range k.Processes {
			if p.PID != k.Killed.PID {
				one.Others = append(one.Others, memoryOf(p))
			}
		}
		of = append(of, one)
	}
	return of
}

func memoryOf(p kernellog.Process) why.MemoryOf {
	return why.MemoryOf{PID: p.PID, Name: p.Name, Bytes: p.Bytes}
}
