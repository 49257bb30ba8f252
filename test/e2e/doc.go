// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built wherry binary on real containers with the real kubectl, as its users meet it. The files
// without _test are the harness, which other test packages may import; the rest are the tests.
//
// A [Server] is one `wherry server` process on a data folder and ports of its own. [World] is what a whole test run
// shares: the binary ($WHERRY, else bin/wherry), the kubectls, the images. A [Space] is a namespace for one test on a
// server, with everything a test says: create pods, wait until, kubectl. So a test reads:
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		s := shared(t)                       // a Space on the server that most tests share
//		s.Create(NewPod("web", Tool("http")))
//		pod := s.WaitReady("web")
//		s.Kubectl("get", "pod", "web").Has("1/1", "Running")
//	}
//
// and one that must stop or kill a server starts its own:
//
//	srv := own(t)                            // ServerOptions can be given
//	s := srv.Space(t)
//	srv.Kill(); srv.Start(ctx)
//
// Laws. Waiting is done by watches, not by sleeping, and a wait that fails says what the pod looks like, its events,
// and the end of the server's log. At the end of every test its namespace is deleted, and [Space] checks that nothing
// is left on the node of any pod it saw (PL-10); at the end of every server it is purged, and the same is checked for
// the whole data folder (processes, mounts, cgroups, network, nftables, folders). Names of images are [Tool]'s and
// [Sh]'s business; tests that pull use a [Registry]. All need root and say so when skipped.
package e2e
