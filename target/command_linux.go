package target

import "syscall"

// dieWithWorker kills a command when the thread that starts it ends: with the worker, however that is killed.
func dieWithWorker(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
