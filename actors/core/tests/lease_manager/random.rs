//! Random steps.
