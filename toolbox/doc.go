// SPDX-License-Identifier: Apache-2.0

// Command toolbox is the program of the image wherry.dev/toolbox: a shell and the commands one wants for looking around
// in a pod, in one static file. The name it is called by picks the command; /bin/NAME are links to it. `toolbox NAME
// ARG...` runs a command without a link, `toolbox --list` lists them, `toolbox --install FOLDER` makes the links.
//
// It is a module of its own, so that what it is made of stays out of wherry's. Its law: it starts in a few milliseconds
// (nothing is set up before it is needed), needs no file but itself, works as any user, without a capability and on a
// read-only file system, and says plainly what it may not do.
package main
