//! How a long call tells how far it is, and how a program stops it.

use std::ffi::{c_int, c_void};

/// What a long call calls now and then; it may be NULL where one is taken.
#[repr(C)]
pub struct CallProgress {
    /// Told how much is `done` of `total`, which is an estimate, and 0 where nobody knows it. What
    /// that counts is said where it is taken. If it returns other than 0 the call stops and fails
    /// with ECANCELED. It is called by the thread that made the call; it may use other handles, and
    /// files of this one, and must return: no longjmp and no exception out of it. NULL: nobody is
    /// told.
    pub tell: Option<unsafe extern "C" fn(done: u64, total: u64, context: *mut c_void) -> c_int>,
    /// Handed to it.
    pub context: *mut c_void,
}

/// Whoever wants to hear of a call.
pub(crate) struct Listener<'a>(Option<&'a CallProgress>);

impl<'a> Listener<'a> {
    /// Who a program says.
    ///
    /// # Safety
    /// `progress` is null or one that stays as it is while the call lasts, and its function can be
    /// called with its context.
    pub(crate) unsafe fn of(progress: *const CallProgress) -> Self {
        // SAFETY: the caller's promise.
        Self(unsafe { progress.as_ref() })
    }

    /// Tells how far it is; false if the program wants it to stop.
    pub(crate) fn goes_on(&self, done: u64, total: u64) -> bool {
        let Some(CallProgress { tell: Some(tell), context }) = self.0 else { return true };
        // SAFETY: whoever made this promised that it can be called.
        unsafe { tell(done, total, *context) == 0 }
    }
}
