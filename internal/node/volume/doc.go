// SPDX-License-Identifier: Apache-2.0

// Package volume makes the folders and files that a pod's containers get (PL-05): emptyDir, hostPath, configMap,
// secret, downwardAPI and projected volumes, sub-paths of them, the hosts file and the termination log.
//
// Manager is the whole of it: Prepare before the sandbox, Mounts for each container, Refresh when an object changed,
// CleanUp when nothing of the pod runs any more. Everything that belongs to a pod is below <Root>/<pod uid>:
//
//	volumes/kubernetes.io~<kind>/<volume>           a volume; memory-backed ones and those with secrets are tmpfs mounts
//	volumeDevices/<volume>                          a link to the device of a block volume
//	volume-subpaths/<volume>/<container>/<index>    a bind mount of what a subPath was resolved to
//	etc-hosts                                       the pod's /etc/hosts
//	containers/<container>/<attempt>                a termination log; <attempt>.condemned beside it is package ops'
//
// Its laws. Every step can be repeated, and a crash between any two is repaired by doing it again: folders are finished
// under another name and renamed, mounts are looked for before they are made, and file contents are compared with what
// is there. Readers of a configMap, secret, downwardAPI or projected volume see all of one version or all of another.
// Nothing is ever removed through a mount: CleanUp unmounts, looks again, and its remover refuses to cross into another
// mount.
package volume
