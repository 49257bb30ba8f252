// SPDX-License-Identifier: Apache-2.0

// Package files has the commands about files and folders: ls, find, cp, tar and their kind.
//
// Its law: links are not followed unless a flag says so, and what cannot be done to one file is said and the next is
// taken. [Applets] lists them.
package files

import "github.com/wherryproject/wherry/toolbox/internal/applet"

// Applets returns the package's commands.
func Applets() []applet.Applet {
	return []applet.Applet{
		{Name: "basename", Usage: "PATH [SUFFIX]", Short: "Print the last part of a path", Names: true, Run: basename},
		{Name: "chgrp", Usage: "GROUP FILE...", Short: "Change the group of files", Run: chgrp},
		{Name: "chmod", Usage: "MODE FILE...", Short: "Change the permissions of files; MODE is octal or as u+rx,go-w",
			Run: chmod},
		{Name: "chown", Usage: "[USER][:[GROUP]] FILE...", Short: "Change the owner of files", Run: chown},
		{Name: "cp", Usage: "SOURCE... TARGET", Short: "Copy files", Run: cp},
		{Name: "df", Usage: "[FILE]...", Short: "Show how full file systems are", Names: true, Run: df},
		{Name: "dirname", Usage: "PATH", Short: "Print a path without its last part", Names: true, Run: dirname},
		{Name: "du", Usage: "[FILE]...", Short: "Show the space files and folders take", Names: true, Run: du},
		{Name: "file", Usage: "FILE...", Short: "Guess what files are", Names: true, Run: guess},
		{Name: "find", Usage: "[PATH]... [TEST | ACTION]...", Short: "Find files below folders", Names: true,
			Run: find},
		{Name: "ln", Usage: "TARGET... [LINK | FOLDER]", Short: "Make links", Run: ln},
		{Name: "ls", Usage: "[FILE]...", Short: "List files", Names: true, Run: ls},
		{Name: "mkdir", Usage: "FOLDER...", Short: "Make folders", Run: mkdir},
		{Name: "mktemp", Usage: "[TEMPLATE]", Short: "Make a temporary file or folder and print its name", Names: true,
			Run: mktemp},
		{Name: "mount", Usage: "", Short: "List what is mounted", Names: true, Run: mount},
		{Name: "mv", Usage: "SOURCE... TARGET", Short: "Move or rename files", Run: mv},
		{Name: "pwd", Usage: "", Short: "Print the current folder", Names: true, Run: pwd},
		{Name: "readlink", Usage: "FILE...", Short: "Print what a symbolic link points to", Names: true, Run: readlink},
		{Name: "realpath", Usage: "FILE...", Short: "Print paths without links and dots", Names: true, Run: realpath},
		{Name: "rm", Usage: "FILE...", Short: "Remove files", Run: rm},
		{Name: "rmdir", Usage: "FOLDER...", Short: "Remove empty folders", Run: rmdir},
		{Name: "stat", Usage: "FILE...", Short: "Show all that is known about files", Names: true, Run: stat},
		{Name: "sync", Usage: "", Short: "Write what is buffered to the disks", Run: syncDisks},
		{Name: "tar", Usage: "[FILE]...", Short: "Make (-c), list (-t) or extract (-x) archives", Run: tarball},
		{Name: "touch", Usage: "FILE...", Short: "Make files, or set their times to now", Run: touch},
		{Name: "truncate", Usage: "-s SIZE FILE...", Short: "Set the size of files", Run: truncate},
	}
}
