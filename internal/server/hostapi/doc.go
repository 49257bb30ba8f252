// SPDX-License-Identifier: Apache-2.0

// Package hostapi is what the wherry command asks a running server for that the Kubernetes API has no word for: images
// of the node. It is HTTP on a unix socket that only root can open: Server is the serving side, Client the command's.
//
//	GET    /v1/server               who serves: pid, version, URL
//	GET    /v1/images               list
//	POST   /v1/images/import        body: a tar archive (OCI or docker)
//	GET    /v1/images/export?ref=   answer: a tar archive; several refs allowed
//	POST   /v1/images/pull?ref=     body: a login, or nothing
//	GET    /v1/images/inspect?ref=
//	GET    /v1/images/transfers     parts of images that are being fetched
//	POST   /v1/images/tag?ref=&as=
//	POST   /v1/images/prune?all=
//	POST   /v1/registries/login?registry=   body: a login; and logout, without
//	DELETE /v1/images?ref=&force=
//
// Its law: errors cross the socket as a sentence for the user; a stream that breaks off is an error, never a short
// archive. The API is private to one version of wherry: both ends are the same binary.
package hostapi
