// SPDX-License-Identifier: Apache-2.0

package connect

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherryproject/wherry/internal/api/query"
)

// RegisterConversions teaches a scheme to read the query parameters of the requests of this package.
func RegisterConversions(scheme *runtime.Scheme) error {
	for _, register := range []func(*runtime.Scheme) error{
		query.Reads((*corev1.PodLogOptions)(nil), readLog),
		query.Reads((*corev1.PodAttachOptions)(nil), readAttach),
		query.Reads((*corev1.PodPortForwardOptions)(nil), readPortForward),
		query.Reads((*corev1.PodProxyOptions)(nil), func(q *query.Reader,
			o *corev1.PodProxyOptions) {
			q.Text("path", &o.Path)
		}),
		query.Reads((*corev1.NodeProxyOptions)(nil), func(q *query.Reader,
			o *corev1.NodeProxyOptions) {
			q.Text("path", &o.Path)
		}),
		query.Reads((*corev1.ServiceProxyOptions)(nil), func(q *query.Reader,
			o *corev1.ServiceProxyOptions) {
			q.Text("path", &o.Path)
		}),
	} {
		if err := register(scheme); err != nil {
			return err
		}
	}
	return nil
}

func readLog(q *query.Reader, o *corev1.PodLogOptions) {
	q.Text("container", &o.Container)
	q.Flag("follow", &o.Follow)
	q.Flag("previous", &o.Previous)
	query.Into(q, "sinceSeconds", &o.SinceSeconds, runtime.Convert_Slice_string_To_Pointer_int64)
	query.Into(q, "sinceTime", &o.SinceTime, metav1.Convert_Slice_string_To_Pointer_v1_Time)
	q.Flag("timestamps", &o.Timestamps)
	query.Into(q, "tailLines", &o.TailLines, runtime.Convert_Slice_string_To_Pointer_int64)
	query.Into(q, "limitBytes", &o.LimitBytes, runtime.Convert_Slice_string_To_Pointer_int64)
	q.Flag("insecureSkipTLSVerifyBackend", &o.InsecureSkipTLSVerifyBackend)
	if q.Has("stream") {
		stream := q.Value("stream")
		o.Stream = &stream
	}
}

func readAttach(q *query.Reader, o *corev1.PodAttachOptions) {
	q.Flag("stdin", &o.Stdin)
	q.Flag("stdout", &o.Stdout)
	q.Flag("stderr", &o.Stderr)
	q.Flag("tty", &o.TTY)
	q.Text("container", &o.Container)
}

func readPortForward(q *query.Reader, o *corev1.PodPortForwardOptions) {
	query.Into(q, "ports", &o.Ports, metav1.Convert_Slice_string_To_Slice_int32)
}
