"""The data doctor: examines data before training, and stops on data that would ruin it.

`diagnose` examines pairs or lines, `files` whole files, `tables` and `questions` data of other shapes. All of them
return a `findings.Diagnosis`. Nothing is imported here, because translating needs only `lines`.
"""
