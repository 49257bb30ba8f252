// SPDX-License-Identifier: Apache-2.0

// Package imageexec runs commands of other images in pods: image exec (IX-01 to IX-06, IX-09, IX-10).
//
// [Execs.Prepare] does everything that can still fail with an ordinary HTTP response, and returns a [Session]: the
// image is there, the containers' files are put together below one folder, a container is created. [Session.Run] starts
// it, joins its streams, waits for its end and gives its exit code; [Session.Close] takes everything away again,
// [Execs.Run] what could not be taken away then, and [Execs.Sweep] what a former server left. The decisions on the way
// are in files of their own, as pure functions: which attempt of each container is shown (choose.go), where and as whom
// the command runs (place.go, config.go), what is written down as evidence (evidence.go).
//
// The command sees each container of the pod as /c/<name>: its root filesystem with its volumes in their places, and
// /c/.wherry/<name> with its environment, how it ended, and the end of its log. A container that starts while the
// command runs appears too (follow.go), as /c/<name>.<attempt> if an attempt before it is shown, whose files stay as
// long as the command. All of this is mounted on the node, in a folder of the session that no other mount namespace
// shares, and bound into the container as one.
//
// Its laws. An image exec is no part of the pod: no worker sees it, and it may end at any moment. Everything it makes
// is named by its session before it is made, so that a sweep finds it. Nothing is ever removed through a mount: a
// session's folder is unmounted and then removed only if it is empty. A container's paths are resolved within its own
// root, as its processes would, so that no container leads the command, or the node, elsewhere.
package imageexec
