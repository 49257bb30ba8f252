// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/wherryproject/wherry/internal/exitcode"
	"github.com/wherryproject/wherry/internal/oneline"
)

// program is what a runtime calls the program that it could not start: exec: "nginx": …
var program = regexp.MustCompile(`exec:? "?([^": ]+)"?: `)

// Start explains why a container could not be started, from the runtime's words.
func (b Box) Start(words, from string) *Finding {
	f := &Finding{Where: b.Label}
	message := exitcode.Plain(words)
	f.fact(from, "%s", oneline.Cut(message, 300))
	name := "its program"
	if m := program.FindStringSubmatch(message); m != nil {
		name = m[1]
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(strings.ToLower(message), w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("executable file not found"):
		f.What = fmt.Sprintf("its image has no program %s", name)
		b.command(f)
		f.try("correct command (or args: with an image that has no ENTRYPOINT they are the command), or use an image that has it")
	case has("exec format error"):
		wrongFormat(f, name)
	case has("permission denied") && has("exec"):
		f.What = fmt.Sprintf("%s may not be run: its file is not executable, or not for the user of the container",
			name)
		b.command(f)
		f.try("chmod +x when the image is built; defaultMode: 0755 for a file of a ConfigMap; or another securityContext.runAsUser")
	case has("is a directory"):
		f.What = fmt.Sprintf("%s is a folder, not a program", name)
		b.command(f)
	case has("chdir to cwd", "getting pwd"):
		f.What = "its working directory cannot be entered"
		f.try("correct workingDir, or make the folder when the image is built, readable for the container's user")
	case has("unable to find user", "no matching entries in passwd", "unable to find group"):
		f.What = "the user that its image or pod names does not exist in the image"
		f.try("set securityContext.runAsUser to a number, or make the user when the image is built")
	case has("not a directory") && has("mount"):
		f.What = "a mount puts a folder where the image has a file, or a file where it has a folder"
		f.try("correct mountPath; to put a single file over another one use subPath")
	case has("read-only file system"):
		f.What = "a mount point cannot be made, since what it lies in is read-only"
		f.try("make the folder when the image is built, or mount somewhere else")
	case has("no such file or directory"):
		f.What = fmt.Sprintf("%s does not exist in the image, or what is needed to run it does not", name)
		b.command(f)
		f.try("correct the path; of a script the interpreter in its first line must be there too, of a program its dynamic loader (a glibc program in an Alpine image)")
	case has("memory") && has("too low", "busy", "not large enough"), has("container init was oom-killed"):
		f.What = "its memory limit is too low to start anything in it"
		b.limit(f)
		f.try("raise resources.limits.memory: below a few MiB nothing can start")
	default:
		f.What = "the container runtime could not start it"
		f.try("read the runtime's words above; the log of its node may say more")
	}
	return f
}

func (b Box) command(f *Finding) {
	if len(b.Command) > 0 {
		f.fact("spec", "command: %s", oneline.Cut(strings.Join(b.Command, " "), 120))
	} else {
		f.fact("spec", "no command is given: the image's own is run (%s)", b.Image)
	}
}

func (b Box) limit(f *Finding) {
	if b.MemoryLimit != "" {
		f.fact(b.LimitField, "memory limit %s", b.MemoryLimit)
	}
}

// wrongFormat explains a program that the kernel does not know how to run.
func wrongFormat(f *Finding, name string) {
	f.What = fmt.Sprintf("the kernel cannot run %s (exec format error): it is built for another processor, or it is a script without #! in its first line",
		name)
	f.try("use an image for the node's processor (kubectl get nodes -L kubernetes.io/arch), or write #!/bin/sh into the script's first line")
}
